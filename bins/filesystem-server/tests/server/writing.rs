//! The tools that change the world, which are there only on request.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use crate::served::Served;

async fn writable() -> Served {
    Served::with(&["--writable"]).await
}

#[tokio::test]
async fn writes_new_files_and_replaces_old_ones() {
    let served = writable().await;
    let write = |content: &str| json!({"file_path": "/notes.txt", "content": content});
    assert_eq!(
        served.text("write_file", write("grüße\n")).await,
        "Created /notes.txt (8 bytes)"
    );
    let file = served.world().join("notes.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "grüße\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(
        served.text("write_file", write("")).await,
        "Replaced /notes.txt (0 bytes)"
    );
    assert_eq!(fs::read(&file).unwrap(), b"");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o750,
        "permissions stay"
    );

    let keep = json!({"file_path": "/notes.txt", "content": "x", "overwrite": false});
    assert_eq!(
        served.failure("write_file", keep).await,
        "File exists: /notes.txt (overwrite is false)"
    );
    assert_eq!(
        served
            .failure(
                "write_file",
                json!({"file_path": "/no/such/a.txt", "content": "x"})
            )
            .await,
        "Folder not found: /no/such (create it with create_directory first)"
    );
    assert_eq!(
        served
            .failure(
                "write_file",
                json!({"file_path": "/notes.txt/a.txt", "content": "x"})
            )
            .await,
        "Folder not found: /notes.txt (create it with create_directory first)"
    );
    assert_eq!(
        served
            .failure("write_file", json!({"file_path": "/", "content": "x"}))
            .await,
        "Not a file: /"
    );
    // Through a link the file it leads to is written, and the link stays one.
    served.link("way.txt", "notes.txt");
    served
        .text(
            "write_file",
            json!({"file_path": "/way.txt", "content": "through"}),
        )
        .await;
    assert!(served.world().join("way.txt").is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "through");
    assert_eq!(
        fs::read_dir(served.world()).unwrap().count(),
        2,
        "no temporary file is left"
    );
}

#[tokio::test]
async fn creates_folders() {
    let served = writable().await;
    assert_eq!(
        served
            .text("create_directory", json!({"path": "/a/b/c"}))
            .await,
        "Created folder /a/b/c"
    );
    assert!(served.world().join("a/b/c").is_dir());
    assert_eq!(
        served
            .text("create_directory", json!({"path": "/a/b/c"}))
            .await,
        "Folder exists already: /a/b/c"
    );
    served.put("file", "");
    let reason = served
        .failure("create_directory", json!({"path": "/file"}))
        .await;
    assert_eq!(reason, "Not a folder: /file exists and is something else");
    assert!(
        served
            .failure("create_directory", json!({"path": "/file/x"}))
            .await
            .contains("/file/x")
    );
}

#[tokio::test]
async fn edits_exact_passages() {
    let served = writable().await;
    served.put("a.md", "# Title\r\none\r\ntwo\r\none\r\n");
    let edit =
        |old: &str, new: &str| json!({"file_path": "/a.md", "old_text": old, "new_text": new});
    assert_eq!(
        served
            .text("edit_file", edit("Title\none", "Heading\n1"))
            .await,
        "Edited /a.md: 1 replacement(s), now 24 bytes"
    );
    let content = || fs::read_to_string(served.world().join("a.md")).unwrap();
    assert_eq!(content(), "# Heading\r\n1\r\ntwo\r\none\r\n");
    assert_eq!(
        served.failure("edit_file", edit("three", "3")).await,
        "Failed to edit file: /a.md: old_text was not found; it must match the file exactly, with spaces and line ends"
    );
    assert_eq!(
        served.failure("edit_file", edit("o", "0")).await,
        "Failed to edit file: /a.md: old_text occurs 2 times; give more of its surroundings, or set replace_all"
    );
    assert_eq!(
        content(),
        "# Heading\r\n1\r\ntwo\r\none\r\n",
        "a refused edit changes nothing"
    );
    let all = json!({"file_path": "/a.md", "old_text": "o", "new_text": "0", "replace_all": true});
    assert_eq!(
        served.text("edit_file", all).await,
        "Edited /a.md: 2 replacement(s), now 24 bytes"
    );
    assert_eq!(content(), "# Heading\r\n1\r\ntw0\r\n0ne\r\n");
    assert!(
        served
            .failure("edit_file", edit("", "x"))
            .await
            .starts_with("old_text is empty")
    );
    assert!(
        served
            .failure("edit_file", edit("x", "x"))
            .await
            .contains("nothing would change")
    );
    served.put("binary.txt", b"ab\xff");
    let binary = json!({"file_path": "/binary.txt", "old_text": "a", "new_text": "b"});
    assert_eq!(
        served.failure("edit_file", binary).await,
        "Failed to edit file: /binary.txt: not UTF-8 text (at byte 2)"
    );
    let missing = json!({"file_path": "/none.txt", "old_text": "a", "new_text": "b"});
    assert_eq!(
        served.failure("edit_file", missing).await,
        "File not found: /none.txt"
    );
}

#[tokio::test]
async fn moves_without_overwriting() {
    let served = writable().await;
    served.put("a.txt", "a");
    served.put("b.txt", "b");
    served.put("folder/c.txt", "c");
    let shift =
        |source: &str, destination: &str| json!({"source": source, "destination": destination});
    assert_eq!(
        served
            .text("move_file", shift("/a.txt", "/folder/a2.txt"))
            .await,
        "Moved /a.txt to /folder/a2.txt"
    );
    assert_eq!(
        fs::read_to_string(served.world().join("folder/a2.txt")).unwrap(),
        "a"
    );
    assert_eq!(
        served.text("move_file", shift("/folder", "/shelf")).await,
        "Moved /folder to /shelf"
    );
    assert!(!served.world().join("folder").exists() && served.world().join("shelf/c.txt").exists());
    for destination in ["/shelf", "/shelf/c.txt", "/"] {
        let reason = served
            .failure("move_file", shift("/b.txt", destination))
            .await;
        assert!(
            reason.starts_with(&format!("Destination exists: {destination} ")),
            "{reason}"
        );
    }
    assert_eq!(
        served.failure("move_file", shift("/none", "/x")).await,
        "File not found: /none"
    );
    assert_eq!(
        served.failure("move_file", shift("/", "/x")).await,
        "The root itself cannot be moved"
    );
    assert_eq!(
        served
            .failure("move_file", shift("/b.txt", "/no/b.txt"))
            .await,
        "Folder not found: /no (create it with create_directory first)"
    );
    assert_eq!(
        served
            .failure("move_file", shift("/shelf", "/shelf/in"))
            .await,
        "Failed to move file: /shelf/in lies in /shelf"
    );
    assert_eq!(
        fs::read_to_string(served.world().join("b.txt")).unwrap(),
        "b"
    );
}

#[tokio::test]
async fn deletes_files_and_empty_folders_only() {
    let served = writable().await;
    served.put("folder/a.txt", "a");
    served.link("way", "folder");
    let delete = |path: &str| json!({"file_path": path});
    assert_eq!(
        served.failure("delete_file", delete("/folder")).await,
        "Folder is not empty: /folder (delete what is in it first)"
    );
    assert_eq!(
        served.text("delete_file", delete("/way")).await,
        "Deleted /way"
    );
    assert_eq!(
        served.text("delete_file", delete("/folder/a.txt")).await,
        "Deleted /folder/a.txt"
    );
    assert_eq!(
        served.text("delete_file", delete("/folder")).await,
        "Deleted empty folder /folder"
    );
    assert_eq!(
        served.failure("delete_file", delete("/folder")).await,
        "File not found: /folder"
    );
    assert_eq!(
        served.failure("delete_file", delete("/")).await,
        "The root itself cannot be deleted"
    );
    assert_eq!(fs::read_dir(served.world()).unwrap().count(), 0);
}
