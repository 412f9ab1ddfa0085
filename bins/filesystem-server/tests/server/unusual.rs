//! Names that are not UTF-8, things that are neither file nor folder, what must not be read.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
    process::Command,
};

use serde_json::json;

use crate::served::{PROGRAM, Served, folder, program};

#[tokio::test]
async fn names_that_are_not_utf8_are_shown_and_reached() {
    let served = Served::with(&["--writable"]).await;
    let folder = served.world().join(OsStr::from_bytes(b"sch\xf6n"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(OsStr::from_bytes(b"gr\xfc\xdfe.txt")), "hello").unwrap();
    assert_eq!(
        served.text("list_files", json!({})).await,
        "'sch\u{fffd}n' (folder)\n"
    );
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "*.txt"}))
            .await,
        "Found 1 file(s) matching '*.txt':\n/sch\u{fffd}n/gr\u{fffd}\u{fffd}e.txt"
    );
    let path = json!({"file_path": "/sch\u{fffd}n/gr\u{fffd}\u{fffd}e.txt"});
    assert_eq!(served.text("read_text_file", path.clone()).await, "hello");
    served
        .text(
            "write_file",
            json!({"file_path": path["file_path"], "content": "changed"}),
        )
        .await;
    assert_eq!(
        fs::read(folder.join(OsStr::from_bytes(b"gr\xfc\xdfe.txt"))).unwrap(),
        b"changed"
    );
    // Two entries that look the same: neither is guessed.
    fs::create_dir(served.world().join(OsStr::from_bytes(b"sch\xfan"))).unwrap();
    assert_eq!(
        served.failure("read_text_file", path).await,
        "File not found: /sch\u{fffd}n/gr\u{fffd}\u{fffd}e.txt"
    );
}

#[tokio::test]
async fn names_are_taken_literally() {
    let served = Served::with(&[]).await;
    for name in [
        "a b.txt",
        "*.txt",
        "~.txt",
        "$HOME.txt",
        "new\nline.txt",
        "日本.txt",
        "a%2e.txt",
    ] {
        served.put(name, name);
        let read = served
            .text("read_text_file", json!({"file_path": format!("/{name}")}))
            .await;
        assert_eq!(read, name);
    }
    let null = served
        .failure("read_text_file", json!({"file_path": "/a\0b.txt"}))
        .await;
    assert!(null.starts_with("Failed to read text file: "), "{null}");
}

#[tokio::test]
async fn fifos_and_sockets_are_left_alone() {
    let served = Served::with(&[]).await;
    let fifo = served.world().join("pipe.txt");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let _socket =
        std::os::unix::net::UnixListener::bind(served.world().join("socket.txt")).unwrap();
    served.put("file.txt", "x");
    assert_eq!(
        served.listed("/").await,
        ["'file.txt' (text/plain file) 1 bytes"]
    );
    assert_eq!(
        served.text("get_directory_tree", json!({})).await,
        "/\n└── file.txt"
    );
    for path in ["/pipe.txt", "/socket.txt"] {
        let reason = served
            .failure("read_text_file", json!({"file_path": path}))
            .await;
        assert_eq!(
            reason,
            format!("Not a file: {path}"),
            "and nobody waits for a writer"
        );
    }
}

/// The server as somebody who may not do everything. Where the tests run as root, that is another user, to whom the
/// program is given as a copy, since the build folder may be closed to others.
async fn unprivileged(folder: tempfile::TempDir, flags: &[&str]) -> Option<Served> {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let probe = folder.path().join("probe");
    fs::write(&probe, "").unwrap();
    fs::set_permissions(&probe, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = if fs::read(&probe).is_ok() {
        let copy = folder.path().join("filesystem-server");
        fs::copy(PROGRAM, &copy).unwrap();
        as_nobody(&copy)?
    } else {
        program()
    };
    command
        .arg("--root")
        .arg(folder.path().join("world"))
        .args(flags);
    Some(Served::started(folder, command).await)
}

/// Runs a program as the user `nobody`, if this machine allows that.
fn as_nobody(program: &Path) -> Option<Command> {
    let command = || {
        let mut command = Command::new("setpriv");
        command.env_clear().env("RUST_LOG", "error");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program);
        command
    };
    match command().arg("--version").output() {
        Ok(output) if output.status.success() => return Some(command()),
        Ok(output) => eprintln!(
            "SKIPPED: setpriv: {}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => {
            let _ = testkit::available(&format!("setpriv ({error})"), false);
        }
    }
    None
}

#[tokio::test]
async fn what_must_not_be_read_is_said() {
    let Some(served) = unprivileged(folder(), &[]).await else {
        return;
    };
    served.put("closed.txt", "x");
    served.put("shut/inner/a.txt", "x");
    served.put("open/b.txt", "x");
    fs::set_permissions(
        served.world().join("closed.txt"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    fs::set_permissions(
        served.world().join("shut"),
        fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    assert_eq!(
        served
            .failure("read_text_file", json!({"file_path": "/closed.txt"}))
            .await,
        "Failed to read text file: permission denied: /closed.txt"
    );
    assert_eq!(
        served.text("list_files", json!({"path": "/shut"})).await,
        "[permission denied: /shut]\n"
    );
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "*", "path": "/shut"}))
            .await,
        "[permission denied: /shut]"
    );
    assert_eq!(
        served
            .text(
                "get_file_metadata",
                json!({"file_path": "/shut/inner/a.txt"})
            )
            .await,
        "[permission denied: /shut/inner/a.txt]"
    );
    assert_eq!(
        served.text("get_directory_tree", json!({})).await,
        "/\n├── open/\n│   └── b.txt\n├── shut/\n│   [permission denied]\n└── closed.txt"
    );
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "?.txt"}))
            .await,
        "Found 1 file(s) matching '?.txt':\n/open/b.txt\n\n(1 folder(s) could not be read)"
    );
    fs::set_permissions(
        served.world().join("shut"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
}

#[tokio::test]
async fn what_must_not_be_written_stays() {
    let folder = folder();
    let world = folder.path().join("world");
    fs::set_permissions(&world, fs::Permissions::from_mode(0o777)).unwrap();
    let Some(served) = unprivileged(folder, &["--writable"]).await else {
        return;
    };
    served.put("kept.txt", "kept");
    fs::set_permissions(world.join("kept.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::create_dir(world.join("closed")).unwrap();
    fs::set_permissions(world.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let denied = |what: &str, path: &str| format!("Failed to {what}: permission denied: {path}");
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    assert_eq!(
        served.failure("write_file", write("/kept.txt")).await,
        denied("write file", "/kept.txt")
    );
    let edit = json!({"file_path": "/kept.txt", "old_text": "kept", "new_text": "x"});
    assert_eq!(
        served.failure("edit_file", edit).await,
        denied("edit file", "/kept.txt")
    );
    assert_eq!(
        served.failure("write_file", write("/closed/new.txt")).await,
        denied("write file", "/closed/new.txt")
    );
    assert_eq!(fs::read_to_string(world.join("kept.txt")).unwrap(), "kept");
    assert_eq!(fs::read_dir(&world).unwrap().count(), 2);
}
