//! The diff of two worlds as a document, down to rows and members.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::path::Path;

use formats::diff::{ChangeKind, FileChange, PictureFacts, WorldDiff};
use rusqlite::Connection;
use serde_json::json;

fn find<'d>(diff: &'d WorldDiff, path: &str) -> &'d FileChange {
    let found = diff.changes.iter().find(|change| change.path == path);
    found.unwrap_or_else(|| panic!("{path} is not in {:?}", diff.changes))
}

fn write(world: &Path, name: &str, content: &[u8]) {
    let path = world.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

#[test]
fn rows_stand_in_the_document() {
    let home = tempfile::tempdir().unwrap();
    let (before, after) = (home.path().join("before"), home.path().join("after"));
    write(&before, "filesystem/a.csv", b"id,v\n1,x\n2,y\n");
    write(&after, "filesystem/a.csv", b"id,v\n1,x\n2,z\n");
    write(&before, "filesystem/p.gif", b"GIF89a\x03\0\x02\0\0\0\0");
    write(&after, "filesystem/p.gif", b"GIF89a\x09\0\x02\0\0\0\0");
    write(&before, "filesystem/broken.xlsx", b"not a workbook");
    write(&after, "filesystem/broken.xlsx", b"no workbook either");

    // A database in use: the new row is in the log only.
    write(&before, ".apps_data/crm/data.db", b"");
    let path = before.join(".apps_data/crm/data.db");
    let live = Connection::open(&path).unwrap();
    live.execute_batch(
        "PRAGMA journal_mode=WAL; CREATE TABLE deals (id INTEGER PRIMARY KEY, stage); INSERT INTO deals VALUES (1,'new');",
    )
    .unwrap();
    drop(live);
    let content = std::fs::read(&path).unwrap();
    write(&after, ".apps_data/crm/data.db", &content);
    let live = Connection::open(after.join(".apps_data/crm/data.db")).unwrap();
    live.execute_batch("UPDATE deals SET stage = 'won'")
        .unwrap();

    let diff = harness::world::compare(&before, &after).unwrap();
    drop(live);

    let log = find(&diff, ".apps_data/crm/data.db-wal");
    assert_eq!(log.kind, ChangeKind::Created);
    assert_eq!(
        serde_json::to_value(&log.tables).unwrap(),
        json!([{
            "name": "deals", "kind": "modified", "key": ["id"],
            "rows_added": 0, "rows_deleted": 0, "rows_modified": 1, "truncated": false,
            "rows": [{"kind": "modified", "before": {"id": 1, "stage": "new"}, "after": {"id": 1, "stage": "won"}}]
        }])
    );
    let csv = find(&diff, "filesystem/a.csv");
    assert_eq!(csv.tables[0].rows_modified, 1);
    assert!(csv.text_diff.as_ref().unwrap().contains("-2,y\n+2,z\n"));
    let picture = find(&diff, "filesystem/p.gif");
    let kind = |facts: &Option<PictureFacts>| facts.as_ref().unwrap().mime.clone();
    assert_eq!(kind(&picture.old_picture).as_deref(), Some("image/gif"));
    assert_eq!(kind(&picture.new_picture).as_deref(), Some("image/gif"));
    assert_eq!(picture.note, None);
    // `GIF89a` and the two sizes, as base64 writes them.
    let preview = |facts: &Option<PictureFacts>| facts.as_ref().unwrap().preview.clone();
    assert_eq!(
        (preview(&picture.old_picture), preview(&picture.new_picture)),
        (
            Some("data:image/gif;base64,R0lGODlhAwACAAAAAA==".to_owned()),
            Some("data:image/gif;base64,R0lGODlhCQACAAAAAA==".to_owned())
        )
    );
    let broken = find(&diff, "filesystem/broken.xlsx");
    assert!(
        broken
            .note
            .as_ref()
            .unwrap()
            .starts_with("broken xlsx document")
    );
    let again: WorldDiff = serde_json::from_str(&serde_json::to_string(&diff).unwrap()).unwrap();
    assert_eq!(again, diff);
}

/// The text of a document that is no text itself is compared as text.
#[test]
fn documents_are_compared_by_their_text() {
    let home = tempfile::tempdir().unwrap();
    let (before, after) = (home.path().join("before"), home.path().join("after"));
    let docx = |paragraphs: &[&str], style: &str| -> Vec<u8> {
        let body: String = paragraphs
            .iter()
            .map(|text| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"))
            .collect();
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, content) in [
            (
                "word/document.xml",
                format!(r#"<w:document xmlns:w="w"><w:body>{body}</w:body></w:document>"#),
            ),
            ("word/styles.xml", style.to_owned()),
        ] {
            zip.start_file(name, zip::write::SimpleFileOptions::default())
                .unwrap();
            std::io::Write::write_all(&mut zip, content.as_bytes()).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    write(&before, "filesystem/a.docx", &docx(&["one", "two"], ""));
    write(&after, "filesystem/a.docx", &docx(&["one", "2"], ""));
    write(&before, "filesystem/style.docx", &docx(&["one"], ""));
    write(&after, "filesystem/style.docx", &docx(&["one"], "<s/>"));
    write(&after, "filesystem/new.docx", &docx(&["new"], ""));
    write(&before, "filesystem/broken.pdf", b"no pdf\0");
    let diff = harness::world::compare(&before, &after).unwrap();
    let text = |path: &str| find(&diff, path).text_diff.clone().unwrap();
    assert!(text("filesystem/a.docx").ends_with("@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
    assert_eq!(find(&diff, "filesystem/a.docx").note, None);
    assert!(text("filesystem/new.docx").ends_with("@@ -0,0 +1 @@\n+new\n"));
    let note = |path: &str| find(&diff, path).note.clone().unwrap();
    assert_eq!(
        note("filesystem/style.docx"),
        "the text of the document is the same"
    );
    assert!(note("filesystem/broken.pdf").starts_with("broken pdf document"));
}
