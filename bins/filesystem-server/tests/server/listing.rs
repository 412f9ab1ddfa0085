//! `list_files`, `search_files`, `get_directory_tree`, `get_file_metadata` (mcp-servers.md §2.3, §2.6, §2.7, §2.9).

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use serde_json::json;

use crate::served::Served;

/// The offices of a small firm: enough of everything.
async fn firm() -> Served {
    let served = Served::with(&[]).await;
    served.put("letter.txt", "twelve bytes");
    served.put(".hidden", "");
    served.put("Photo.JPG", "x");
    served.put("sheet.xlsx", "xx");
    served.put("docs/b.md", "b");
    served.put("docs/A.md", "aa");
    served.put("docs/deep/deeper/c.md", "ccc");
    fs::create_dir(served.world().join("empty")).unwrap();
    served
}

#[tokio::test]
async fn lists_files_and_folders_with_types_and_sizes() {
    let served = firm().await;
    let wanted = "'.hidden' (unknown file) 0 bytes\n\
                  'Photo.JPG' (image/jpeg file) 1 bytes\n\
                  'docs' (folder)\n\
                  'empty' (folder)\n\
                  'letter.txt' (text/plain file) 12 bytes\n\
                  'sheet.xlsx' (unknown file) 2 bytes\n";
    for path in ["/", "", "/filesystem", "/filesystem/", "/docs/..", "//"] {
        assert_eq!(
            served.text("list_files", json!({"path": path})).await,
            wanted,
            "{path}"
        );
    }
    assert_eq!(served.text("list_files", json!({})).await, wanted);
    let docs = "'A.md' (text/markdown file) 2 bytes\n'b.md' (text/markdown file) 1 bytes\n'deep' (folder)\n";
    let physical = served.world().join("docs").to_string_lossy().into_owned();
    for path in [
        "/docs",
        "docs",
        "docs/",
        "/filesystem/docs",
        "/empty/../docs/./",
        &physical,
    ] {
        assert_eq!(
            served.text("list_files", json!({"path": path})).await,
            docs,
            "{path}"
        );
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_path() {
    let served = firm().await;
    for (path, list, others) in [
        ("/nope", "[not found: /nope]\n", "[not found: /nope]"),
        (
            "/letter.txt/x",
            "[not found: /letter.txt/x]\n",
            "[not found: /letter.txt/x]",
        ),
        (
            "/../etc",
            "[access denied: /../etc]\n",
            "[access denied: /../etc]",
        ),
        (
            "/filesystem/../etc",
            "[access denied: /filesystem/../etc]\n",
            "[access denied: /filesystem/../etc]",
        ),
    ] {
        assert_eq!(served.text("list_files", json!({"path": path})).await, list);
        assert_eq!(
            served
                .text("search_files", json!({"pattern": "*", "path": path}))
                .await,
            others
        );
        assert_eq!(
            served
                .text("get_directory_tree", json!({"path": path}))
                .await,
            others
        );
        assert_eq!(
            served
                .text("get_file_metadata", json!({"file_path": path}))
                .await,
            others
        );
    }
    let file = json!({"path": "/letter.txt", "pattern": "*"});
    assert_eq!(
        served.text("search_files", file).await,
        "[not a directory: /letter.txt]"
    );
    assert_eq!(
        served
            .text("list_files", json!({"path": "/letter.txt"}))
            .await,
        "[not a directory: /letter.txt]\n"
    );
    assert_eq!(
        served
            .text("get_directory_tree", json!({"path": "/letter.txt"}))
            .await,
        "[not a directory: /letter.txt]"
    );

    assert_eq!(
        served
            .failure("search_files", json!({"pattern": "*", "path": "docs"}))
            .await,
        "Path must start with /"
    );
    assert_eq!(
        served
            .failure("get_directory_tree", json!({"path": "docs"}))
            .await,
        "Path must start with /"
    );
    assert_eq!(
        served
            .failure("get_directory_tree", json!({"path": ""}))
            .await,
        "Path is required and must be a string"
    );
    assert_eq!(
        served
            .failure("get_file_metadata", json!({"file_path": "x"}))
            .await,
        "File path must start with /"
    );
    assert_eq!(
        served
            .failure("get_file_metadata", json!({"file_path": ""}))
            .await,
        "File path is required and must be a string"
    );
}

#[tokio::test]
async fn empty_folders_have_their_own_words() {
    let served = Served::with(&[]).await;
    fs::create_dir(served.world().join("empty")).unwrap();
    assert_eq!(
        served.text("list_files", json!({"path": "/empty"})).await,
        "No items found in '/empty'"
    );
    assert_eq!(
        served
            .text("get_directory_tree", json!({"path": "/empty"}))
            .await,
        "/empty/\n(empty)"
    );
    fs::remove_dir(served.world().join("empty")).unwrap();
    assert!(
        served
            .text("list_files", json!({}))
            .await
            .starts_with("Directory is empty.")
    );
    assert!(
        served
            .text("get_directory_tree", json!({}))
            .await
            .starts_with("/\n(empty - the sandbox root contains no visible files or folders.")
    );
}

#[tokio::test]
async fn links_show_as_what_they_lead_to() {
    let served = firm().await;
    served.link("to-file.md", "docs/b.md");
    served.link("to-folder", "docs");
    served.link("dangling", "nowhere");
    served.link("conventional", "/filesystem/docs/A.md");
    served.link("outside", "/etc/hostname");
    let lines = served.listed("/").await;
    for line in [
        "'to-file.md' (text/markdown file) 1 bytes",
        "'to-folder' (folder)",
        "'conventional' (unknown file) 2 bytes",
        "'outside' (link that leads outside)",
    ] {
        assert!(lines.contains(&line.to_owned()), "{line} in {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains("dangling")));
}

#[tokio::test]
async fn searches_names() {
    let served = firm().await;
    served.put("docs/deep/z.md", "");
    let search = async |arguments| served.text("search_files", arguments).await;
    assert_eq!(
        search(json!({"pattern": "*.md"})).await,
        "Found 4 file(s) matching '*.md':\n/docs/A.md\n/docs/b.md\n/docs/deep/z.md\n/docs/deep/deeper/c.md",
        "the files of a folder come before its folders"
    );
    assert_eq!(
        search(json!({"pattern": "?.md", "path": "/docs", "recursive": false})).await,
        "Found 2 file(s) matching '?.md':\n/docs/A.md\n/docs/b.md"
    );
    assert_eq!(
        search(json!({"pattern": "[!A-Z].md", "path": "/docs", "recursive": false})).await,
        "Found 1 file(s) matching '[!A-Z].md':\n/docs/b.md"
    );
    assert_eq!(
        search(json!({"pattern": "*.md", "max_results": 2})).await,
        "Found 2 file(s) matching '*.md':\n/docs/A.md\n/docs/b.md\n\n(Results limited to 2)"
    );
    assert!(
        !search(json!({"pattern": "*.md", "max_results": 0}))
            .await
            .contains("limited")
    );
    assert!(
        !search(json!({"pattern": "*.md", "max_results": -5}))
            .await
            .contains("limited")
    );
    assert_eq!(
        search(json!({"pattern": "*hidden"})).await,
        "Found 1 file(s) matching '*hidden':\n/.hidden"
    );
    assert_eq!(
        search(json!({"pattern": "docs", "path": "/docs"})).await,
        "No files matching 'docs' found in /docs"
    );
    assert!(search(json!({"pattern": "docs"})).await.starts_with(
        "No files matching 'docs' found in /. The sandbox root may not contain files at the top level."
    ));
    assert_eq!(
        served.failure("search_files", json!({"pattern": ""})).await,
        "Pattern is required and must be a string"
    );
}

#[tokio::test]
async fn search_shows_the_files_that_links_lead_to() {
    let served = firm().await;
    served.link("one.lnk", "docs/b.md");
    served.link("two.lnk", "missing/file");
    served.link("three.lnk", "docs");
    served.link("four.lnk", "/etc/hostname");
    let search = async |arguments| served.text("search_files", arguments).await;
    assert_eq!(
        search(json!({"pattern": "*.lnk"})).await,
        "Found 2 file(s) matching '*.lnk':\n/docs/b.md\n/missing/file"
    );
    assert_eq!(
        search(json!({"pattern": "*.lnk", "recursive": false})).await,
        "Found 1 file(s) matching '*.lnk':\n/docs/b.md"
    );
}

#[tokio::test]
async fn draws_a_tree() {
    let served = firm().await;
    served.link("link", "docs");
    assert_eq!(
        served
            .text("get_directory_tree", json!({"show_size": true}))
            .await,
        "/\n\
         ├── docs/\n\
         │   ├── deep/\n\
         │   │   └── deeper/\n\
         │   ├── A.md (2 bytes)\n\
         │   └── b.md (1 bytes)\n\
         ├── empty/\n\
         ├── .hidden (0 bytes)\n\
         ├── letter.txt (12 bytes)\n\
         ├── Photo.JPG (1 bytes)\n\
         └── sheet.xlsx (2 bytes)"
    );
    assert_eq!(
        served
            .text(
                "get_directory_tree",
                json!({"path": "/link", "max_depth": 99, "include_files": false})
            )
            .await,
        "/docs/\n└── deep/\n    └── deeper/",
        "a link shows its target"
    );
    assert_eq!(
        served
            .text(
                "get_directory_tree",
                json!({"path": "/docs", "max_depth": -3})
            )
            .await,
        "/docs/\n├── deep/\n├── A.md\n└── b.md",
        "one level is the least"
    );
}

#[tokio::test]
async fn a_tree_has_at_most_500_entries() {
    let served = Served::with(&[]).await;
    for number in 0..501 {
        served.put(&format!("many/{number:04}"), "");
    }
    let tree = served.text("get_directory_tree", json!({})).await;
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines.len(), 1 + 500 + 1);
    assert_eq!(lines[1], "└── many/");
    assert_eq!(lines[500], "    ├── 0498");
    assert_eq!(lines[501], "    ... (truncated at 500 entries)");
}

#[tokio::test]
async fn describes_files_folders_and_links() {
    let served = firm().await;
    let letter = served.world().join("letter.txt");
    fs::set_permissions(&letter, fs::Permissions::from_mode(0o640)).unwrap();
    let file = fs::File::options().write(true).open(&letter).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001))
        .unwrap();
    served.link("docs/way", "/filesystem/letter.txt");
    served.link("docs/lost", "../gone");

    let text = served
        .text("get_file_metadata", json!({"file_path": "/letter.txt"}))
        .await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "Path: /letter.txt",
            "Type: file",
            "MIME type: text/plain",
            "Size: 12 bytes (12 B)",
            "Permissions: rw-r----- (640)",
            "Modified: 2023-11-14T22:13:20.000001+00:00",
        ]
    );
    assert!(lines[6].starts_with("Accessed: 20") && lines[6].ends_with("+00:00"));
    assert!(lines[7].starts_with("Created/Changed: 20"));
    let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&letter).unwrap());
    assert_eq!(lines[8], format!("Inode: {inode}"));
    assert!(lines[9].starts_with("Device: "));
    assert_eq!(lines[10..], ["Hard links: 1"]);

    let folder = served
        .text("get_file_metadata", json!({"file_path": "/docs"}))
        .await;
    assert!(
        folder.starts_with("Path: /docs\nType: directory\nSize: "),
        "{folder}"
    );
    let link = served
        .text("get_file_metadata", json!({"file_path": "/docs/way"}))
        .await;
    let start = "Path: /docs/way\nType: symlink\nSymlink target: /letter.txt\nMIME type: text/plain\nSize: 12 bytes";
    assert!(link.starts_with(start), "{link}");
    assert_eq!(
        served
            .text("get_file_metadata", json!({"file_path": "/docs/lost"}))
            .await,
        "Path: /docs/lost\nType: symlink\nSymlink target: ../gone"
    );
}
