//! Environments as processes in a view of the machine of their own, by the bubblewrap of this
//! machine.

use std::path::Path;
use std::time::Duration;

use formats::apps::AppsConfig;
use formats::owner::Owner;
use sandbox::{BindMount, Isolation, Needs, ProcessSandbox, Sandbox as _, SandboxError, StopKind};

use crate::process::{Place, eventually};
use crate::stub::{Script, Stub};

/// Whether bubblewrap works here; said aloud where it does not.
fn bubblewrap_works() -> bool {
    let works = std::process::Command::new("bwrap")
        .args([
            "--ro-bind",
            "/",
            "/",
            "--unshare-pid",
            "--proc",
            "/proc",
            "true",
        ])
        .status()
        .is_ok_and(|status| status.success());
    testkit::available("a bubblewrap that is allowed to work", works)
}

/// An isolated environment that runs `script`, then serves by `stub` until it is asked to end.
fn isolated(place: &Place, stub: &Stub, script: &str) -> ProcessSandbox {
    let script = format!(
        "{script}\necho 'listening on {}' >&2; cat > /dev/null",
        stub.url()
    );
    let mut sandbox = place.sandbox(&script);
    sandbox.isolation = Isolation::Bubblewrap;
    sandbox
}

fn log(place: &Place) -> String {
    std::fs::read_to_string(place.log()).unwrap_or_default()
}

#[tokio::test]
async fn it_sees_its_roots_at_their_usual_places_and_the_rest_read_only() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let sandbox = isolated(
        &place,
        &stub,
        "echo world > /filesystem/a && echo app > /.apps_data/b && echo x > /tmp/c && echo ROOTS
         for place in /etc /usr / $NOTES $(dirname $0); do
             touch $place/archipelago-test 2>/dev/null && echo WRITTEN $place
         done
         echo \"variables $FILESYSTEM_ROOT $APPS_DATA_ROOT $TMPDIR\"
         echo processes: $(ls /proc | grep -c '^[0-9]')
         echo shown: $(cat $NOTES/shown)
         extra-tool && echo TOOL",
    )
    .with_program("extra-tool", "/bin/true");
    std::fs::write(place.notes().join("shown"), "the machine's file").unwrap();
    let running = sandbox.start(place.request()).await.unwrap();

    let said = log(&place);
    assert!(said.contains("ROOTS\n"), "{said}");
    assert!(!said.contains("WRITTEN"), "{said}");
    assert!(
        said.contains("variables /filesystem /.apps_data /tmp\n"),
        "{said}"
    );
    assert!(said.contains("shown: the machine's file\n"), "{said}");
    assert!(said.contains("TOOL\n"), "{said}");
    // Bubblewrap's own, the shell, and those of the pipe: none of this test or of the machine.
    let line = said.lines().find(|line| line.starts_with("processes: "));
    let count: u32 = line.unwrap()["processes: ".len()..].parse().unwrap();
    assert!((2..=6).contains(&count), "{said}");

    let remarks = running.remarks().join("\n");
    assert!(remarks.contains("isolated by bubblewrap "), "{remarks}");
    assert!(running.roots().is_none());
    let mut config: AppsConfig = serde_json::from_str(
        r#"{"mcpServers": {"x": {"transport": "stdio", "command": "c", "cwd": "/filesystem"}}}"#,
    )
    .unwrap();
    assert!(running.rewrite(&mut config).is_empty());
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Asked, "{stopped:?}");
    assert!(stopped.remarks.is_empty(), "{stopped:?}");
    place.assert_no_folder_left();
    assert!(!Path::new("/tmp/c").exists());
}

#[tokio::test]
async fn worlds_of_other_trials_are_out_of_sight() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let roots = place.notes().with_file_name("roots");
    let sandbox = isolated(
        &place,
        &stub,
        &format!("echo seen: $(ls -A {}).", roots.display()),
    );
    let first = sandbox.start(place.request()).await.unwrap();
    let second = sandbox.start(place.request()).await.unwrap();
    assert_eq!(
        log(&place).matches("seen: .\n").count(),
        2,
        "{}",
        log(&place)
    );
    first.stop().await;
    second.stop().await;
    place.assert_no_folder_left();
}

#[tokio::test]
async fn keys_in_the_home_folder_are_out_of_sight_and_caches_can_be_written() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let home = place.notes().join("home");
    for name in [".ssh", ".cache", "work"] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    std::fs::write(home.join(".ssh/id"), "a secret key").unwrap();
    std::fs::write(home.join(".netrc"), "a secret word").unwrap();
    std::fs::write(home.join("work/a.txt"), "work").unwrap();
    let sandbox = isolated(
        &place,
        &stub,
        "cat $HOME/.ssh/id $HOME/.netrc $HOME/work/a.txt
         touch $HOME/.cache/new; touch $HOME/work/new",
    )
    .with_variable("HOME", &home);
    let running = sandbox.start(place.request()).await.unwrap();
    let said = log(&place);
    assert!(!said.contains("secret") && said.contains("work"), "{said}");
    assert!(home.join(".cache/new").exists() && !home.join("work/new").exists());
    running.stop().await;
}

#[tokio::test]
async fn what_a_task_needs_is_there() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    std::fs::write(place.notes().join("server.py"), "the server").unwrap();
    let mut needs = Needs::default();
    needs.variables = vec![("MODE".to_owned(), "strict".to_owned())];
    needs.mounts = vec![BindMount {
        source: place.notes(),
        target: "/app/mcp_servers/mine".to_owned(),
        writable: false,
    }];
    needs.image = Some("an-image".to_owned());
    let sandbox = isolated(
        &place,
        &stub,
        "echo $MODE: $(cat /app/mcp_servers/mine/server.py)
         touch /app/mcp_servers/mine/new || echo REFUSED",
    );
    let request = place.request().with_needs(needs);
    let running = sandbox.start(request).await.unwrap();
    let said = log(&place);
    assert!(
        said.contains("strict: the server\n") && said.contains("REFUSED"),
        "{said}"
    );
    assert!(
        running.remarks()[0].contains("`image` only counts with `--sandbox docker`"),
        "{:?}",
        running.remarks()
    );
    running.stop().await;
}

#[tokio::test]
async fn everything_inside_ends_also_when_nothing_is_obeyed() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    // A word in the arguments that no other process has.
    let mark = format!("86{:08}", fastrand::u32(10_000_000..99_999_999));
    let script = format!(
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep {mark}' & \
         echo 'listening on {}' >&2; while true; do sleep 1; done",
        stub.url()
    );
    let mut sandbox = place.sandbox(&script);
    sandbox.isolation = Isolation::Bubblewrap;
    sandbox.limits.stop_asked = Duration::from_millis(100);
    sandbox.limits.stop_terminated = Duration::from_millis(300);
    let running = sandbox.start(place.request()).await.unwrap();
    let sleeping = || {
        let found = std::process::Command::new("pgrep")
            .args(["-f", &mark])
            .output();
        !found.unwrap().stdout.is_empty()
    };
    assert!(sleeping());
    running.stop().await;
    eventually(|| !sleeping()).await;
    place.assert_no_folder_left();
}

#[tokio::test]
async fn one_that_obeys_sigterm_may_put_things_in_order() {
    if !bubblewrap_works() {
        return;
    }
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let script = format!(
        "trap 'sleep 0.3; echo IN ORDER; exit 0' TERM; echo 'listening on {}' >&2; \
         while true; do sleep 0.05; done",
        stub.url()
    );
    let mut sandbox = place.sandbox(&script);
    sandbox.isolation = Isolation::Bubblewrap;
    sandbox.limits.stop_asked = Duration::from_millis(100);
    let running = sandbox.start(place.request()).await.unwrap();
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Terminated);
    assert!(log(&place).contains("IN ORDER"), "{}", log(&place));
}

#[tokio::test]
async fn without_bubblewrap_it_says_so_or_refuses() {
    let (place, stub) = (Place::new(), Stub::start(Script::default()).await);
    let mut sandbox = isolated(&place, &stub, "").with_variable("PATH", "/nowhere");
    // Its script still needs this.
    let script = format!("echo 'listening on {}' >&2; exec /bin/cat", stub.url());
    let refused = sandbox.start(place.request()).await.unwrap_err();
    assert!(matches!(refused, SandboxError::Unsupported(_)), "{refused}");
    assert_eq!(refused.owner(), Owner::Configuration);
    assert!(
        refused
            .to_string()
            .contains("`bwrap` (bubblewrap) is not on"),
        "{refused}"
    );

    sandbox = place.sandbox(&script).with_variable("PATH", "/nowhere");
    sandbox.isolation = Isolation::Auto;
    let running = sandbox.start(place.request()).await.unwrap();
    assert!(running.roots().is_some());
    let remarks = running.remarks().join("\n");
    assert!(
        remarks.contains("is not isolated") && remarks.contains("bubblewrap"),
        "{remarks}"
    );
    running.stop().await;

    let mut needs = Needs::default();
    needs.mounts = vec![BindMount {
        source: place.notes(),
        target: "/app".to_owned(),
        writable: false,
    }];
    let error = sandbox
        .start(place.request().with_needs(needs))
        .await
        .unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
    assert!(
        error.to_string().contains("a process without bubblewrap"),
        "{error}"
    );
    place.assert_no_folder_left();
}
