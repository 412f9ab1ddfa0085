//! Environments as processes: shell scripts that behave well and badly, in front of a stub.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::stub::{Script, Stub};
use formats::owner::Owner;
use sandbox::{
    ProcessSandbox, RunningEnvironment, Sandbox as _, SandboxError, StartRequest, StopKind,
};

/// A place for one test: where sandboxes make their folders, and where scripts leave notes.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["roots", "notes"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub(crate) fn notes(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path().join("trial/environment.log")
    }

    pub(crate) fn request(&self) -> StartRequest {
        StartRequest::new("task-1", self.log())
    }

    /// A sandbox whose environment is this shell script.
    pub(crate) fn sandbox(&self, script: &str) -> ProcessSandbox {
        let mut sandbox = ProcessSandbox::new("/bin/sh", ["-c", script, "environment"])
            .inherit(std::env::vars_os())
            .with_variable("NOTES", self.notes());
        sandbox.temporary_root = self.folder.path().join("roots");
        // Where something has to happen within them, a busy machine may need long.
        sandbox.limits.stop_asked = Duration::from_secs(20);
        sandbox.limits.stop_terminated = Duration::from_secs(20);
        sandbox.limits.stop_killed = Duration::from_secs(20);
        sandbox
    }

    /// Waits until a script has written `name` and returns what it says.
    async fn note(&self, name: &str) -> String {
        let path = self.notes().join(name);
        eventually(|| std::fs::read_to_string(&path).is_ok_and(|note| note.ends_with('\n'))).await;
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    pub(crate) fn assert_no_folder_left(&self) {
        let left: Vec<_> = std::fs::read_dir(self.folder.path().join("roots"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(
            begin.elapsed() < Duration::from_secs(8),
            "it never came true"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process lives; one that waits to be reaped does not.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

fn process_group(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(2).unwrap().to_owned()
}

fn listens(stub: &Stub) -> String {
    format!(
        "echo 'listening on {}' >&2; echo $$ > $NOTES/pid; ",
        stub.url()
    )
}

async fn start(place: &Place, script: &str) -> RunningEnvironment {
    place.sandbox(script).start(place.request()).await.unwrap()
}

#[tokio::test]
async fn a_good_environment_starts_with_its_own_roots_and_ends_when_asked() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let script = format!(
        "echo \"$@\" > $NOTES/args; env > $NOTES/env; echo on stdout; {} cat > /dev/null; exit 4",
        listens(&stub)
    );
    let sandbox = place
        .sandbox(&script)
        .with_program("extra-tool", "/bin/true")
        .inherit([("OPENAI_API_KEY".into(), "secret".into())]);
    let running = sandbox.start(place.request()).await.unwrap();
    assert_eq!(running.base_url(), stub.url());
    running.check().await.unwrap();

    let args = place.note("args").await;
    assert_eq!(args, "--host 127.0.0.1 --port 0 --stop-on-stdin-close");
    let env = place.note("env").await;
    let (filesystem, apps_data) = running.roots().unwrap();
    assert!(
        env.contains(&format!("FILESYSTEM_ROOT={}", filesystem.display())),
        "{env}"
    );
    assert!(
        env.contains(&format!("APPS_DATA_ROOT={}", apps_data.display())),
        "{env}"
    );
    assert!(!env.contains("secret") && !env.contains("CARGO"), "{env}");
    let path = env
        .lines()
        .find_map(|line| line.strip_prefix("PATH="))
        .unwrap();
    let bin = Path::new(path.split(':').next().unwrap());
    assert_eq!(
        std::fs::read_link(bin.join("extra-tool")).unwrap(),
        Path::new("/bin/true")
    );
    assert!(filesystem.is_dir() && apps_data.is_dir());

    let pid = place.note("pid").await;
    assert!(lives(&pid));
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Asked);
    assert_eq!(stopped.exit.as_deref(), Some("exit status 4"));
    assert_eq!((stopped.kept, stopped.remarks), (None, Vec::new()));
    assert!(!lives(&pid));
    place.assert_no_folder_left();
    let log = std::fs::read_to_string(place.log()).unwrap();
    assert_eq!(log, format!("on stdout\nlistening on {}\n", stub.url()));
}

#[tokio::test]
async fn an_early_death_is_reported_at_once_with_status_and_last_lines() {
    let place = Place::new();
    let begin = Instant::now();
    let failed = place
        .sandbox("echo reading settings; echo 'root is missing' >&2; exit 3")
        .start(place.request())
        .await;
    let error = failed.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment did not become ready: the environment ended with exit status 3; its last \
         lines:\n    reading settings\n    root is missing"
    );
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "environment_died")
    );
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "the limit of 30 s was waited for"
    );
    place.assert_no_folder_left();
}

#[tokio::test]
async fn a_missing_program_is_a_mistake_of_the_configuration() {
    let place = Place::new();
    let mut sandbox = ProcessSandbox::new("/no/such/environment", [""; 0]);
    sandbox.temporary_root = place.folder.path().join("roots");
    let error = sandbox.start(place.request()).await.unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
    assert!(
        error.to_string().contains("`/no/such/environment`"),
        "{error}"
    );
    place.assert_no_folder_left();
}

#[tokio::test]
async fn an_environment_that_never_listens_is_given_up_and_killed() {
    let place = Place::new();
    let mut sandbox = place.sandbox("echo $$ > $NOTES/pid; echo still loading; exec sleep 300");
    sandbox.limits.ready = Duration::from_millis(500);
    sandbox.limits.stop_asked = Duration::from_millis(200);
    let error = sandbox.start(place.request()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment did not say within 500ms where it listens; its last lines:\n    still \
         loading"
    );
    let pid = place.note("pid").await;
    assert!(!lives(&pid));
    place.assert_no_folder_left();
}

#[tokio::test]
async fn an_environment_that_listens_and_does_not_answer_is_unhealthy() {
    let stub = Stub::start(Script {
        unhealthy: usize::MAX,
        ..Script::default()
    })
    .await;
    let place = Place::new();
    let mut sandbox = place.sandbox(&format!("{} cat > /dev/null", listens(&stub)));
    sandbox.limits.ready = Duration::from_millis(400);
    let error = sandbox.start(place.request()).await.unwrap_err();
    assert!(matches!(error, SandboxError::Unhealthy(_)), "{error}");
    assert!(!lives(&place.note("pid").await));
    place.assert_no_folder_left();
}

#[tokio::test]
async fn a_cancelled_start_leaves_nothing_behind() {
    let place = Place::new();
    let mut sandbox = place.sandbox("echo $$ > $NOTES/pid; exec sleep 300");
    sandbox.limits.stop_asked = Duration::from_millis(200);
    let cancel = tokio_util::sync::CancellationToken::new();
    let request = place.request().cancelled_by(cancel.clone());
    let (started, pid) = tokio::join!(sandbox.start(request), async {
        let pid = place.note("pid").await;
        cancel.cancel();
        pid
    });
    let error = started.unwrap_err();
    assert_eq!(error.owner(), Owner::Cancelled);
    assert!(!lives(&pid));
    place.assert_no_folder_left();
}

#[tokio::test]
async fn a_death_in_the_middle_is_found_by_check_and_told_by_the_client() {
    // A stub of its own, that answers the health check and then hangs up without an answer.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let place = Place::new();
    let die = place.notes().join("die");
    let server = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        loop {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let read = connection.read(&mut request).unwrap();
            if request[..read].starts_with(b"GET /health") {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nOK";
                connection.write_all(answer).unwrap();
                continue;
            }
            std::fs::write(&die, "").unwrap();
            return;
        }
    });
    let script = format!(
        "echo 'listening on http://{address}'; until [ -e $NOTES/die ]; do sleep 0.02; done; \
         echo 'out of memory' >&2; kill -9 $$"
    );
    let running = start(&place, &script).await;
    running.check().await.unwrap();
    let config = serde_json::from_str(r#"{"mcpServers": {}}"#).unwrap();
    let error = running.client().apps(&config).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "environment_died")
    );
    let told = error.to_string();
    assert!(
        told.contains("the environment ended with signal 9 (SIGKILL)"),
        "{told}"
    );
    assert!(told.ends_with("\n    out of memory"), "{told}");
    server.join().unwrap();

    let died = running.check().await.unwrap_err();
    assert_eq!(died.exit, "signal 9 (SIGKILL)");
    assert_eq!(died.last_lines.0.last().unwrap(), "out of memory");
    assert!(died.failure().message.contains("environment.log"));
    assert_eq!(running.stop().await.kind, StopKind::AlreadyEnded);
    place.assert_no_folder_left();
}

#[tokio::test]
async fn one_that_only_obeys_sigterm_is_terminated() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let script = format!("{} exec sleep 300 < /dev/null", listens(&stub));
    let mut sandbox = place.sandbox(&script);
    sandbox.limits.stop_asked = Duration::from_millis(200);
    let running = sandbox.start(place.request()).await.unwrap();
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Terminated);
    assert_eq!(stopped.exit.as_deref(), Some("signal 15 (SIGTERM)"));
    assert!(!lives(&place.note("pid").await));
}

#[tokio::test]
async fn one_that_ignores_everything_is_killed() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let script = format!(
        "trap '' TERM; {} while :; do sleep 0.1; done",
        listens(&stub)
    );
    let mut sandbox = place.sandbox(&script);
    sandbox.limits.stop_asked = Duration::from_millis(200);
    sandbox.limits.stop_terminated = Duration::from_millis(200);
    let running = sandbox.start(place.request()).await.unwrap();
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Killed);
    assert!(!lives(&place.note("pid").await));
    place.assert_no_folder_left();
}

/// A wrapper whose worker leads a process group of its own, as MCP servers do, and ignores TERM.
fn wrapper(stub: &Stub) -> String {
    // `timeout` makes the group.
    format!(
        "{} timeout 300 sh -c 'trap \"\" TERM; echo $$ > $NOTES/worker; \
         while :; do sleep 0.1; done' & \
         until [ -s $NOTES/worker ]; do sleep 0.02; done; cat > /dev/null",
        listens(stub)
    )
}

#[tokio::test]
async fn what_a_wrapper_started_ends_with_it() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let running = start(&place, &wrapper(&stub)).await;
    let (pid, worker) = (place.note("pid").await, place.note("worker").await);
    assert!(lives(&worker));
    assert_ne!(process_group(&worker), pid);
    let stopped = running.stop().await;
    assert!(!lives(&worker));
    assert_eq!(stopped.kind, StopKind::Asked);
    assert_eq!(stopped.remarks.len(), 1, "{:?}", stopped.remarks);
    assert!(stopped.remarks[0].ends_with("outlived the environment and were killed"));
    place.assert_no_folder_left();
}

#[tokio::test]
async fn dropping_it_kills_everything_and_removes_the_folder() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let running = start(&place, &wrapper(&stub)).await;
    let (pid, worker) = (place.note("pid").await, place.note("worker").await);
    drop(running);
    assert!(!lives(&pid) && !lives(&worker));
    place.assert_no_folder_left();
    // And it is reaped, too.
    eventually(|| !Path::new(&format!("/proc/{pid}")).exists()).await;
}

#[tokio::test]
async fn the_log_is_bounded_and_later_lines_still_reach_errors() {
    let place = Place::new();
    let mut sandbox = place.sandbox("echo 0123456789; sleep 0.2; echo the reason; exit 1");
    sandbox.limits.log_bytes = 5;
    let error = sandbox.start(place.request()).await.unwrap_err();
    assert!(error.to_string().ends_with("the reason"), "{error}");
    assert_eq!(
        std::fs::read_to_string(place.log()).unwrap(),
        "01234\n[the log limit of 5 bytes is reached; the rest is dropped]\n"
    );
}

#[tokio::test]
async fn the_folder_is_kept_on_request() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let mut sandbox = place.sandbox(&format!("{} cat > /dev/null", listens(&stub)));
    sandbox.keep = true;
    let running = sandbox.start(place.request()).await.unwrap();
    std::fs::write(running.roots().unwrap().0.join("a.txt"), "a").unwrap();
    let kept = running.stop().await.kept.unwrap();
    assert_eq!(
        std::fs::read_to_string(kept.join("filesystem/a.txt")).unwrap(),
        "a"
    );
}

#[tokio::test]
async fn many_at_once_do_not_meet() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let sandbox = place.sandbox(&format!("{} cat > /dev/null", listens(&stub)));
    let starts = (0..8).map(|_| sandbox.start(place.request()));
    let running = futures::future::try_join_all(starts).await.unwrap();
    let mut roots: Vec<PathBuf> = running
        .iter()
        .map(|running| running.roots().unwrap().0.to_owned())
        .collect();
    roots.sort();
    roots.dedup();
    assert_eq!(roots.len(), 8);
    futures::future::join_all(running.into_iter().map(RunningEnvironment::stop)).await;
    place.assert_no_folder_left();
}

/// Not a test of its own: the program that the next test kills.
#[tokio::test]
#[ignore = "started by `a_killed_program_leaves_nothing_that_runs`"]
async fn program_to_be_killed() {
    let Some(folder) = std::env::var_os("SANDBOX_TEST_FOLDER") else {
        return;
    };
    let stub = Stub::start(Script::default()).await;
    let script = format!("{} cat > /dev/null; echo > $NOTES/ended", listens(&stub));
    let mut sandbox = ProcessSandbox::new("/bin/sh", ["-c", &script])
        .inherit(std::env::vars_os())
        .with_variable("NOTES", Path::new(&folder).join("notes"));
    sandbox.temporary_root = Path::new(&folder).join("roots");
    let log = Path::new(&folder).join("log");
    let _running = sandbox
        .start(StartRequest::new("killed", log))
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_killed_program_leaves_nothing_that_runs() {
    let place = Place::new();
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::program_to_be_killed", "--ignored"])
        .env("SANDBOX_TEST_FOLDER", place.folder.path())
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = place.note("pid").await;
    assert!(lives(&pid));
    program.kill().await.unwrap();
    // Its standard input closed with the program, so it ends in order.
    eventually(|| place.notes().join("ended").exists() && !lives(&pid)).await;

    // The folder that nobody could remove is removed by the next start, here a failing one.
    let roots = place.folder.path().join("roots");
    assert_eq!(std::fs::read_dir(&roots).unwrap().count(), 1);
    place
        .sandbox("exit 1")
        .start(place.request())
        .await
        .unwrap_err();
    place.assert_no_folder_left();
}
