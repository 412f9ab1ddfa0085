//! Real containers of the environment's image, where an engine and the image are there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use formats::apps::AppsConfig;
use formats::owner::Owner;
use sandbox::{
    DEFAULT_IMAGE, DockerSandbox, Engine, RunningEnvironment, Sandbox as _, StartRequest, StopKind,
};
use snapshot::World;

/// A sandbox of the image; `None`, said aloud, where it cannot be had.
fn sandbox() -> Option<DockerSandbox> {
    let image = std::env::var("ARCHIPELAGO_TEST_IMAGE").unwrap_or_else(|_| DEFAULT_IMAGE.into());
    let there = docker(&["image", "inspect", "--format", "there", &image]);
    let engine = format!("a container engine with the image `{image}`");
    if !testkit::available(&engine, there.as_deref() == Some("there")) {
        return None;
    }
    Some(DockerSandbox::new(
        Engine::new(std::env::var("DOCKER_HOST").ok()),
        image,
    ))
}

/// What a docker command prints, if it succeeds.
fn docker(args: &[&str]) -> Option<String> {
    let output = Command::new("docker").args(args).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The container of a trial whose name no other test uses.
fn containers_of(trial: &str) -> Vec<String> {
    let filter = format!("label=archipelago.trial={trial}");
    docker(&["ps", "--all", "--quiet", "--filter", &filter])
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A name that is unique on this machine.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn request(trial: &str, place: &Path) -> StartRequest {
    StartRequest::new(trial, place.join(format!("{trial}.log")))
}

/// A world with one file of `bytes` bytes that do not compress.
fn world(place: &Path, bytes: usize) -> std::path::PathBuf {
    let world = place.join("world");
    std::fs::create_dir_all(world.join("filesystem")).unwrap();
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(bytes)
    .collect();
    std::fs::write(world.join("filesystem/noise"), noise).unwrap();
    world
}

fn files() -> AppsConfig {
    serde_json::from_str(
        r#"{"mcpServers": {"files": {"transport": "stdio", "command": "filesystem-server",
            "cwd": "/filesystem", "env": {"APP_FS_ROOT": "/filesystem"}}}}"#,
    )
    .unwrap()
}

#[tokio::test]
async fn a_world_goes_through_a_container() {
    let Some(sandbox) = sandbox() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let trial = unique("world");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    assert_eq!(containers_of(&trial).len(), 1);
    let client = running.client();
    let world = world(place.path(), 100_000);
    client.populate_world(&world).await.unwrap();
    let mut config = files();
    assert!(running.rewrite(&mut config).is_empty());
    assert_eq!(client.apps(&config).await.unwrap().servers, ["files"]);
    let to = place.path().join("final_snapshot.tar.gz");
    client.snapshot(&to).await.unwrap();
    let after = World::open(&to).unwrap();
    let sizes: Vec<_> = after
        .entries()
        .iter()
        .filter(|entry| entry.is_file())
        .map(|entry| (entry.path().to_owned(), entry.size()))
        .collect();
    assert_eq!(sizes, [("filesystem/noise".to_owned(), 100_000)]);
    let stopped = running.stop().await;
    assert_eq!(
        stopped.exit.as_deref(),
        Some("exit status 0"),
        "{stopped:?}"
    );
    assert!(stopped.remarks.is_empty(), "{stopped:?}");
    assert!(containers_of(&trial).is_empty());
    let log = std::fs::read_to_string(place.path().join(format!("{trial}.log"))).unwrap();
    assert!(log.contains("listening on http://0.0.0.0:8080"), "{log}");
}

#[tokio::test]
async fn a_container_is_locked_up() {
    let Some(mut sandbox) = sandbox() else {
        return;
    };
    sandbox.network = false;
    let place = tempfile::tempdir().unwrap();
    let trial = unique("locked");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    let container = containers_of(&trial).remove(0);
    let inside = |script: &str| {
        let output = Command::new("docker")
            .args(["exec", &container, "sh", "-c", script])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(inside("id -u"), "10001");
    assert_eq!(
        inside("touch /filesystem/a /.apps_data/b /tmp/c ~/d && echo ok"),
        "ok"
    );
    assert_eq!(
        inside("touch /etc/x /app/x 2>/dev/null || echo refused"),
        "refused"
    );
    let status = inside("grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | tr -s '\\t\\n' ' '");
    assert_eq!(status, "CapEff: 0000000000000000 NoNewPrivs: 1");
    let networks = docker(&[
        "inspect",
        "--format",
        "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}",
        &container,
    ]);
    let internal = [
        "network",
        "inspect",
        "--format",
        "{{.Internal}}",
        &networks.unwrap(),
    ];
    assert_eq!(docker(&internal).as_deref(), Some("true"));
    running.stop().await;
}

#[tokio::test]
async fn a_killed_container_is_infrastructure() {
    let Some(sandbox) = sandbox() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let trial = unique("killed");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    docker(&["kill", &containers_of(&trial)[0]]).unwrap();
    let error = running.client().apps(&files()).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "environment_died"),
        "{error}"
    );
    let died = running.check().await.unwrap_err();
    assert_eq!(died.exit, "signal 9 (SIGKILL)");
    assert!(!died.last_lines.0.is_empty());
    running.stop().await;
    assert!(containers_of(&trial).is_empty());
}

#[tokio::test]
async fn a_world_that_is_too_large_for_the_memory_says_so() {
    let Some(mut sandbox) = sandbox() else {
        return;
    };
    sandbox.limits.memory_bytes = Some(32 << 20);
    sandbox.limits.world_bytes = Some(128 << 20);
    let place = tempfile::tempdir().unwrap();
    let trial = unique("memory");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    let world = world(place.path(), 64 << 20);
    let error = running.client().populate_world(&world).await.unwrap_err();
    assert_eq!(error.owner(), Owner::Infrastructure, "{error}");
    let died = running.check().await.unwrap_err();
    assert!(
        died.exit.ends_with("out of memory: the limit is 32 MiB"),
        "{died}"
    );
    running.stop().await;
}

#[tokio::test]
async fn a_world_that_is_too_large_for_its_disk_says_so() {
    let Some(mut sandbox) = sandbox() else {
        return;
    };
    sandbox.limits.world_bytes = Some(1 << 20);
    let place = tempfile::tempdir().unwrap();
    let trial = unique("disk");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    let world = world(place.path(), 4 << 20);
    let error = running.client().populate_world(&world).await.unwrap_err();
    assert_eq!(error.owner(), Owner::Infrastructure, "{error}");
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
    running.check().await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn eight_side_by_side_do_not_meet() {
    let Some(sandbox) = sandbox() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let trial = unique("many");
    let starts = (0..8).map(|_| sandbox.start(request(&trial, place.path())));
    let running = futures::future::try_join_all(starts).await.unwrap();
    let mut addresses: Vec<_> = running.iter().map(RunningEnvironment::base_url).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 8);
    assert_eq!(containers_of(&trial).len(), 8);
    futures::future::join_all(running.into_iter().map(RunningEnvironment::stop)).await;
    assert!(containers_of(&trial).is_empty());
}

/// Passes connections at an address of the engine's bridge on to its socket, as an engine on
/// another machine would be reached.
async fn forward(bridge: &str) -> String {
    let listener = tokio::net::TcpListener::bind((bridge, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let socket = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = socket
        .strip_prefix("unix://")
        .unwrap_or("/var/run/docker.sock");
    let socket = socket.to_owned();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut engine = tokio::net::UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
            });
        }
    });
    format!("tcp://{address}")
}

#[tokio::test]
async fn an_engine_at_another_address_is_worked_with_all_the_same() {
    if sandbox().is_none() {
        return;
    }
    let format = "{{(index .IPAM.Config 0).Gateway}}";
    let bridge = docker(&["network", "inspect", "bridge", "--format", format]).unwrap();
    let engine = Engine::new(Some(forward(&bridge).await));
    let image = std::env::var("ARCHIPELAGO_TEST_IMAGE").unwrap_or_else(|_| DEFAULT_IMAGE.into());
    let sandbox = DockerSandbox::new(engine, image);
    let place = tempfile::tempdir().unwrap();
    let trial = unique("remote");
    let running = sandbox.start(request(&trial, place.path())).await.unwrap();
    let base = format!("http://{bridge}:");
    assert!(
        running.base_url().starts_with(&base),
        "{}",
        running.base_url()
    );
    let client = running.client();
    client
        .populate_world(&world(place.path(), 1000))
        .await
        .unwrap();
    let applied = client.apps(&files()).await.unwrap();
    assert_eq!(applied.servers, ["files"]);
    assert_eq!(running.stop().await.kind, StopKind::Terminated);
    assert!(containers_of(&trial).is_empty());
}

/// Not a test of its own: the program that the next test kills.
#[tokio::test]
#[ignore = "started by `what_a_killed_program_left_is_swept`"]
async fn program_to_be_killed() {
    let (Some(sandbox), Some(trial)) = (sandbox(), std::env::var_os("SANDBOX_TEST_TRIAL")) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let trial = trial.to_string_lossy().into_owned();
    let _running = sandbox.start(request(&trial, place.path())).await.unwrap();
    println!("ready");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn what_a_killed_program_left_is_swept() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let Some(sandbox) = sandbox() else {
        return;
    };
    let trial = unique("orphan");
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "containers::program_to_be_killed",
            "--ignored",
            "--nocapture",
        ])
        .env("SANDBOX_TEST_TRIAL", &trial)
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("ready") {
                return;
            }
        }
        panic!("it ended early");
    };
    tokio::time::timeout(Duration::from_secs(60), ready)
        .await
        .unwrap();
    program.kill().await.unwrap();
    assert_eq!(containers_of(&trial).len(), 1);

    let place = tempfile::tempdir().unwrap();
    let next = sandbox
        .start(request(&unique("next"), place.path()))
        .await
        .unwrap();
    assert!(containers_of(&trial).is_empty());
    next.stop().await;
}
