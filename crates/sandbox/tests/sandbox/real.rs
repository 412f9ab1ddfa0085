//! The real environment in a process sandbox: `archipelago-env`, where it was built.

use std::path::PathBuf;
use std::time::Duration;

use formats::apps::AppsConfig;
use sandbox::{ProcessSandbox, Sandbox as _, StartRequest, StopKind};
use snapshot::World;

/// The program `name` beside this test's own, if it is built and its help mentions `option`.
fn program(name: &str, option: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.parent()?.parent()?.join(name);
    let help = std::process::Command::new(&program).arg("--help").output();
    let built = help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(option));
    testkit::available(&format!("`{}`", program.display()), built).then_some(program)
}

fn environment() -> Option<PathBuf> {
    program("archipelago-env", "--stop-on-stdin-close")
}

#[tokio::test]
async fn a_world_goes_through_the_real_environment() {
    let Some(program) = environment() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let world = place.path().join("world");
    std::fs::create_dir_all(world.join("filesystem/a")).unwrap();
    std::fs::create_dir_all(world.join(".apps_data/mail")).unwrap();
    std::fs::write(world.join("filesystem/a/x.txt"), "gorilla").unwrap();
    std::fs::write(world.join(".apps_data/mail/inbox.json"), "[]").unwrap();

    let mut sandbox = ProcessSandbox::new(program, [""; 0]).inherit(std::env::vars_os());
    sandbox.temporary_root = place.path().join("roots");
    sandbox.limits.stop_asked = Duration::from_secs(20);
    let log = place.path().join("environment.log");
    let running = sandbox
        .start(StartRequest::new("real", &log))
        .await
        .unwrap();
    let client = running.client();
    let populated = client.populate_world(&world).await.unwrap();
    assert_eq!(populated[0].subsystem, "filesystem");
    assert_eq!(populated[0].extracted_bytes, 7);
    let (filesystem, _) = running.roots().unwrap();
    assert_eq!(
        std::fs::read_to_string(filesystem.join("a/x.txt")).unwrap(),
        "gorilla"
    );

    // A server that does not exist is a mistake of the configuration, told at once.
    let mut config: AppsConfig = serde_json::from_str(
        r#"{"mcpServers": {"bad": {"transport": "stdio", "command": "no-such-program-here",
            "env": {"ROOT": "/filesystem"}}}}"#,
    )
    .unwrap();
    assert_eq!(running.rewrite(&mut config).len(), 1);
    let error = client.apps(&config).await.unwrap_err();
    assert_eq!(
        error.owner(),
        formats::owner::Owner::Configuration,
        "{error}"
    );
    assert!(error.to_string().contains("server `bad`"), "{error}");
    let none: AppsConfig = serde_json::from_str(r#"{"mcpServers": {}}"#).unwrap();
    assert!(client.apps(&none).await.unwrap().servers.is_empty());

    std::fs::write(filesystem.join("new.txt"), "made by an agent").unwrap();
    let to = place.path().join("final_snapshot.tar.gz");
    let saved = client.snapshot(&to).await.unwrap();
    assert_eq!(saved.bytes, std::fs::metadata(&to).unwrap().len());
    let after = World::open(&to).unwrap();
    let paths: Vec<&str> = after
        .entries()
        .iter()
        .filter(|entry| entry.is_file())
        .map(snapshot::Entry::path)
        .collect();
    assert_eq!(
        paths,
        [
            ".apps_data/mail/inbox.json",
            "filesystem/a/x.txt",
            "filesystem/new.txt"
        ]
    );

    running.check().await.unwrap();
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Asked, "{stopped:?}");
    assert!(stopped.remarks.is_empty(), "{stopped:?}");
    assert_eq!(
        std::fs::read_dir(place.path().join("roots"))
            .unwrap()
            .count(),
        0
    );
}

#[tokio::test]
async fn a_program_of_the_sandbox_serves_tools_from_the_rewritten_root() {
    let (Some(environment), Some(server)) =
        (environment(), program("filesystem-server", "--writable"))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let sandbox = ProcessSandbox::new(environment, [""; 0])
        .inherit(std::env::vars_os())
        .with_program("filesystem-server", server);
    let log = place.path().join("environment.log");
    let running = sandbox
        .start(StartRequest::new("tools", &log))
        .await
        .unwrap();
    let mut config: AppsConfig = serde_json::from_str(
        r#"{"mcpServers": {"files": {"transport": "stdio", "command": "filesystem-server",
            "cwd": "/filesystem", "env": {"APP_FS_ROOT": "/filesystem"}}}}"#,
    )
    .unwrap();
    assert_eq!(running.rewrite(&mut config).len(), 2);
    let applied = running.client().apps(&config).await.unwrap();
    assert_eq!(applied.servers, ["files"]);
    let stopped = running.stop().await;
    assert!(stopped.remarks.is_empty(), "{stopped:?}");
}
