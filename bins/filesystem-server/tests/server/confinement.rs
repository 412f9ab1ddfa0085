//! Nothing outside the root is reached.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};

use crate::served::{Served, folder, only_text};

const SECRET: &str = "the secret outside";

/// A world beside `secret.txt` and `private/secret.txt`, with all kinds of links to them.
async fn besieged() -> Served {
    let folder = folder();
    fs::write(folder.path().join("secret.txt"), SECRET).unwrap();
    fs::create_dir(folder.path().join("private")).unwrap();
    fs::write(folder.path().join("private/secret.txt"), SECRET).unwrap();
    fs::create_dir(folder.path().join("world-beside")).unwrap();
    fs::write(folder.path().join("world-beside/secret.txt"), SECRET).unwrap();
    let outside = folder.path().to_string_lossy().into_owned();
    let served = Served::of(folder, &["--writable"]).await;
    served.put("inside/ok.txt", "ok");
    served.link("absolute.txt", &format!("{outside}/secret.txt"));
    served.link("relative.txt", "../secret.txt");
    served.link("inside/up", "..");
    served.link("inside/upup", "../..");
    served.link("private", "../private");
    served.link("chain1.txt", "chain2.txt");
    served.link("chain2.txt", "relative.txt");
    served.link("dotted.txt", "inside/up/../secret.txt");
    served.link("conventional.txt", "/filesystem/../secret.txt");
    served.link("loop.txt", "loop.txt");
    served
}

#[tokio::test]
async fn no_path_and_no_link_leads_out() {
    let served = besieged().await;
    let beside = served
        .folder
        .path()
        .join("world-beside/secret.txt")
        .to_string_lossy()
        .into_owned();
    for path in [
        "/../secret.txt",
        "/inside/../../secret.txt",
        "/filesystem/../secret.txt",
        "/absolute.txt",
        "/relative.txt",
        "/inside/upup/secret.txt",
        "/private/secret.txt",
        "/chain1.txt",
        "/dotted.txt",
        "/conventional.txt",
    ] {
        let reason = served
            .failure("read_text_file", json!({"file_path": path}))
            .await;
        assert_eq!(reason, format!("Access denied: {path}"));
        let metadata = served
            .text("get_file_metadata", json!({"file_path": path}))
            .await;
        assert_eq!(metadata, format!("[access denied: {path}]"));
    }
    // A name that merely starts like the root's is no way out, and absolute paths are virtual ones.
    for path in [beside.as_str(), "/etc/passwd.txt", "/proc/self/environ.txt"] {
        let reason = served
            .failure("read_text_file", json!({"file_path": path}))
            .await;
        assert_eq!(reason, format!("File not found: {path}"));
    }
    let reason = served
        .failure("read_text_file", json!({"file_path": "/loop.txt"}))
        .await;
    assert_eq!(
        reason,
        "Failed to read text file: more than 40 links in a row"
    );
    assert_eq!(
        served.text("list_files", json!({"path": "/private"})).await,
        "[access denied: /private]\n"
    );
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "*", "path": "/private"}))
            .await,
        "[access denied: /private]"
    );
    let found = served
        .text("search_files", json!({"pattern": "*.txt"}))
        .await;
    assert_eq!(found, "Found 1 file(s) matching '*.txt':\n/inside/ok.txt");
    // Inside stays inside, also by a detour; `..` in a path is worked out by the text alone.
    let detour = json!({"file_path": "/inside/up/../../inside/ok.txt"});
    assert_eq!(served.text("read_text_file", detour).await, "ok");
    assert_eq!(
        served
            .text(
                "read_text_file",
                json!({"file_path": "/inside/up/inside/ok.txt"})
            )
            .await,
        "ok"
    );
}

#[tokio::test]
async fn nothing_outside_is_written_moved_or_deleted() {
    let served = besieged().await;
    let denied = |path: &str| format!("Access denied: {path}");
    for path in [
        "/relative.txt",
        "/private/new.txt",
        "/../new.txt",
        "/inside/upup/new.txt",
    ] {
        let reason = served
            .failure("write_file", json!({"file_path": path, "content": "x"}))
            .await;
        assert_eq!(reason, denied(path));
        let edit = json!({"file_path": path, "old_text": "the", "new_text": "no"});
        assert_eq!(served.failure("edit_file", edit).await, denied(path));
    }
    for path in ["/private/folder", "/../folder", "/inside/upup/folder"] {
        assert_eq!(
            served
                .failure("create_directory", json!({"path": path}))
                .await,
            denied(path)
        );
    }
    for path in ["/private/secret.txt", "/../secret.txt"] {
        assert_eq!(
            served
                .failure("delete_file", json!({"file_path": path}))
                .await,
            denied(path)
        );
        let out = json!({"source": path, "destination": "/stolen.txt"});
        assert_eq!(served.failure("move_file", out).await, denied(path));
    }
    let into = json!({"source": "/inside/ok.txt", "destination": "/private/ok.txt"});
    assert_eq!(
        served.failure("move_file", into).await,
        denied("/private/ok.txt")
    );
    // A link itself may be deleted or moved; its target stays.
    assert_eq!(
        served
            .text("delete_file", json!({"file_path": "/relative.txt"}))
            .await,
        "Deleted /relative.txt"
    );
    for secret in ["secret.txt", "private/secret.txt"] {
        assert_eq!(
            fs::read_to_string(served.folder.path().join(secret)).unwrap(),
            SECRET
        );
    }
    let mut names: Vec<_> = fs::read_dir(served.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["private", "secret.txt", "world", "world-beside"]);
}

#[tokio::test]
async fn a_link_swapped_in_between_does_not_lead_out() {
    let served = besieged().await;
    served.put("swap/secret.txt", "harmless");
    let world = served.world();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            // `swap` is a folder inside and a link to outside by turns, with no moment in between.
            while !stop.load(Ordering::Relaxed) {
                fs::rename(world.join("swap"), world.join("real")).unwrap();
                fs::rename(world.join("private"), world.join("swap")).unwrap();
                fs::rename(world.join("swap"), world.join("private")).unwrap();
                fs::rename(world.join("real"), world.join("swap")).unwrap();
            }
        }
    });
    let mut harmless = 0;
    for _ in 0..300 {
        let calls: [(&'static str, Value); 4] = [
            ("read_text_file", json!({"file_path": "/swap/secret.txt"})),
            (
                "get_file_metadata",
                json!({"file_path": "/swap/secret.txt"}),
            ),
            (
                "write_file",
                json!({"file_path": "/swap/secret.txt", "content": "harmless"}),
            ),
            ("list_files", json!({"path": "/swap"})),
        ];
        for (tool, arguments) in calls {
            let text = only_text(&served.call(tool, arguments).await);
            assert!(!text.contains(SECRET), "{text}");
            assert!(!text.contains(&format!("{} bytes", SECRET.len())), "{text}");
            harmless += usize::from(text == "harmless");
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(harmless > 0, "the file inside was never there to be read");
    assert_eq!(
        fs::read_to_string(served.folder.path().join("private/secret.txt")).unwrap(),
        SECRET
    );
}
