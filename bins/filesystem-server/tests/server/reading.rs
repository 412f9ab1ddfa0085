//! `read_text_file` and `read_image_file` (mcp-servers.md §2.4, §2.5).

use std::fs;

use base64::Engine as _;
use serde_json::json;

use crate::served::Served;

#[tokio::test]
async fn text_comes_whole_and_unaltered_but_for_line_ends() {
    let served = Served::with(&[]).await;
    served.put(
        "run.sh",
        "cat /filesystem/in.csv\r\necho \"/filesystem\"\rlast",
    );
    assert_eq!(
        served
            .text(
                "read_text_file",
                json!({"file_path": "/run.sh", "max_size": 3})
            )
            .await,
        "cat /filesystem/in.csv\necho \"/filesystem\"\nlast",
        "paths in a file are content, not messages"
    );
    served.put("bom.txt", b"\xef\xbb\xbfx");
    assert_eq!(
        served
            .text("read_text_file", json!({"file_path": "/bom.txt"}))
            .await,
        "\u{feff}x"
    );
    served.put("empty.txt", "");
    assert_eq!(
        served
            .text("read_text_file", json!({"file_path": "/empty.txt"}))
            .await,
        ""
    );
    served.put("sub/Makefile", "all:");
    served.link("way.txt", "sub/Makefile");
    assert_eq!(
        served
            .text("read_text_file", json!({"file_path": "/sub/Makefile"}))
            .await,
        "all:"
    );
    assert_eq!(
        served
            .text("read_text_file", json!({"file_path": "/way.txt"}))
            .await,
        "all:"
    );
}

#[tokio::test]
async fn encodings() {
    let served = Served::with(&[]).await;
    served.put("old.txt", b"caf\xe9");
    let read = |encoding: &str| json!({"file_path": "/old.txt", "encoding": encoding});
    assert_eq!(served.text("read_text_file", read("latin-1")).await, "café");
    assert_eq!(
        served
            .failure("read_text_file", json!({"file_path": "/old.txt"}))
            .await,
        "Failed to decode file with encoding 'utf-8': byte 0xe9 at position 3 does not fit"
    );
    assert_eq!(
        served.failure("read_text_file", read("klingon")).await,
        "Failed to read text file: unknown encoding: klingon"
    );
}

#[tokio::test]
async fn text_errors() {
    let served = Served::with(&[]).await;
    fs::create_dir(served.world().join("folder.txt")).unwrap();
    for (path, reason) in [
        ("", "File path is required and must be a string"),
        ("a.txt", "File path must start with /"),
        ("/nope.txt", "File not found: /nope.txt"),
        ("/folder.txt", "Not a file: /folder.txt"),
        ("/../x.txt", "Access denied: /../x.txt"),
    ] {
        assert_eq!(
            served
                .failure("read_text_file", json!({"file_path": path}))
                .await,
            reason
        );
    }
    // Decided by the name alone: there is no such file.
    for (path, extension) in [("/report.PDF", "pdf"), ("/notes", ""), ("/a.b/c", "")] {
        let reason = served
            .failure("read_text_file", json!({"file_path": path}))
            .await;
        let start = format!(
            "Unsupported file type: '{extension}'. Supported extensions: bash, bat, bib, c, cfg,"
        );
        assert!(reason.starts_with(&start), "{reason}");
        assert!(reason.ends_with(", yaml, yml, zsh"), "{reason}");
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0rest";
const GIF: &[u8] = b"GIF89arest";
const WEBP: &[u8] = b"RIFF\x04\0\0\0WEBPrest";

#[tokio::test]
async fn pictures_come_unchanged_with_the_type_of_their_content() {
    let served = Served::with(&[]).await;
    for (path, content, media_type) in [
        ("a.png", PNG, "image/png"),
        ("a.jpg", JPEG, "image/jpeg"),
        ("a.JPEG", JPEG, "image/jpeg"),
        ("a.gif", GIF, "image/gif"),
        ("a.webp", WEBP, "image/webp"),
        ("a jpeg called.png", JPEG, "image/jpeg"),
    ] {
        served.put(path, content);
        let result = served
            .call("read_image_file", json!({"file_path": format!("/{path}")}))
            .await;
        assert_eq!(result.is_error, Some(false));
        assert_eq!(result.structured_content, None);
        assert_eq!(result.content.len(), 1);
        let image = result.content[0].as_image().unwrap();
        assert_eq!(image.mime_type, media_type, "{path}");
        assert_eq!(
            base64::engine::general_purpose::STANDARD
                .decode(&image.data)
                .unwrap(),
            content
        );
    }
}

#[tokio::test]
async fn picture_errors() {
    let served = Served::with(&[]).await;
    served.put("text.png", "not a picture");
    fs::create_dir(served.world().join("folder.png")).unwrap();
    let formats = "Supported formats: png, jpg, jpeg, gif, webp";
    for (path, reason) in [
        (
            "/a.bmp",
            format!("Unsupported image format: bmp. {formats}"),
        ),
        (
            "/Picture",
            format!("Unsupported image format: /picture. {formats}"),
        ),
        ("/nope.png", "File not found: /nope.png".to_owned()),
        ("/folder.png", "Not a file: /folder.png".to_owned()),
        ("/../a.png", "Access denied: /../a.png".to_owned()),
        ("a.png", "File path must start with /".to_owned()),
    ] {
        assert_eq!(
            served
                .failure("read_image_file", json!({"file_path": path}))
                .await,
            reason
        );
    }
    let reason = served
        .failure("read_image_file", json!({"file_path": "/text.png"}))
        .await;
    assert!(
        reason.starts_with("Failed to read image file: /text.png: the content is none of png"),
        "{reason}"
    );
}
