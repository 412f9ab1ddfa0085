//! What verifiers see of two worlds on disk.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use evidence::{Artifact, Evidence, EvidenceError, EvidenceLimits, Side, WantedFile};
use formats::Object;
use formats::diff::ChangeKind;
use serde_json::json;
use testkit::documents::database;

const XLSX: &[u8] = include_bytes!("../../extract/tests/fixtures/openpyxl.xlsx");
const DOCX: &[u8] = include_bytes!("../../extract/tests/fixtures/python-docx.docx");
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

type Files<'a> = &'a [(&'a str, &'a [u8])];

/// Two worlds as folders.
struct Worlds(tempfile::TempDir);

impl Worlds {
    fn new(before: Files<'_>, after: Files<'_>) -> Self {
        let worlds = Self(tempfile::tempdir().unwrap());
        for (side, files) in [("before", before), ("after", after)] {
            std::fs::create_dir_all(worlds.path(side).join("filesystem")).unwrap();
            for (name, content) in files {
                let path = worlds.path(side).join("filesystem").join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        }
        worlds
    }

    fn path(&self, side: &str) -> std::path::PathBuf {
        self.0.path().join(side)
    }

    fn evidence(&self, limits: EvidenceLimits) -> Evidence {
        let trajectory = json!({"messages": [], "status": "completed", "time_elapsed": 1.0});
        Evidence::new(
            serde_json::from_value(trajectory).unwrap(),
            self.path("before"),
            self.path("after"),
            limits,
        )
    }

    async fn artifacts(&self, limits: EvidenceLimits) -> Vec<Artifact> {
        let changes = self.evidence(limits).changes().await.unwrap();
        changes.artifacts.clone()
    }
}

fn kinds(artifacts: &[Artifact]) -> Vec<(&str, ChangeKind)> {
    artifacts
        .iter()
        .map(|a| (a.path.as_str(), a.change))
        .collect()
}

#[tokio::test]
async fn a_moved_file_is_a_deleted_and_a_created_one() {
    let worlds = Worlds::new(
        &[("old/a.txt", b"same words"), ("b.txt", b"1234")],
        &[("new/a.txt", b"same words"), ("b.txt", b"1243")],
    );
    let artifacts = worlds.artifacts(EvidenceLimits::default()).await;
    assert_eq!(
        kinds(&artifacts),
        [
            ("new/a.txt", ChangeKind::Created),
            // Of the same size, with other content.
            ("b.txt", ChangeKind::Modified),
            ("old/a.txt", ChangeKind::Deleted),
        ]
    );
    assert_eq!(artifacts[0].new_content.as_deref(), Some("same words"));
    assert_eq!(
        artifacts[2].diff.as_deref(),
        Some(
            "--- a/old/a.txt\n+++ b/old/a.txt\n@@ -1 +0,0 @@\n-same words\n\\ No newline at end of file\n"
        )
    );
}

#[tokio::test]
async fn links_lead_to_no_file_outside() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "not for the judge").unwrap();
    let worlds = Worlds::new(&[], &[("a.txt", b"x")]);
    let link = worlds.path("after").join("filesystem/link.txt");
    std::os::unix::fs::symlink(secret.path(), &link).unwrap();
    let artifacts = worlds.artifacts(EvidenceLimits::default()).await;
    assert_eq!(kinds(&artifacts), [("a.txt", ChangeKind::Created)]);
}

#[tokio::test]
async fn a_large_csv_file_is_compared_by_rows() {
    let old: &[u8] = b"id,stage\n1,new\n2,new\n";
    let new: &[u8] = b"id,stage\n1,new\n2,won\n3,new\n";
    let worlds = Worlds::new(&[("deals.csv", old)], &[("deals.csv", new)]);
    let limits = EvidenceLimits {
        csv_rows_above: (old.len() + new.len() - 1) as u64,
        ..EvidenceLimits::default()
    };
    let artifacts = worlds.artifacts(limits).await;
    let diff = artifacts[0].diff.as_deref().unwrap();
    for row in [
        r#"~ row 3: {"id":"2","stage":"new"} -> {"id":"2","stage":"won"}"#,
        r#"+ row 4: {"id":"3","stage":"new"}"#,
    ] {
        assert!(diff.contains(row), "{diff}");
    }
    assert_eq!(
        (&artifacts[0].old_content, &artifacts[0].new_content),
        (&None, &None)
    );
    // One byte less, and it is text: cells separated by tabs.
    let limits = EvidenceLimits {
        csv_rows_above: (old.len() + new.len()) as u64,
        ..EvidenceLimits::default()
    };
    let artifacts = worlds.artifacts(limits).await;
    let diff = artifacts[0].diff.as_deref().unwrap();
    assert!(diff.contains("-2\tnew\n+2\twon\n+3\tnew\n"), "{diff}");
}

#[tokio::test]
async fn of_texts_that_are_too_long_only_the_length_is_told() {
    let worlds = Worlds::new(&[("a.txt", b"12345")], &[("a.txt", b"123456")]);
    let limits = EvidenceLimits {
        diff_text_bytes: 10,
        ..EvidenceLimits::default()
    };
    let artifacts = worlds.artifacts(limits).await;
    assert_eq!(
        artifacts[0].diff.as_deref(),
        Some(
            "--- a/a.txt\n+++ b/a.txt\n@@ 11 bytes of text, too much for a diff (limit `diff_text_bytes`) @@\n"
        )
    );
    assert_eq!(artifacts[0].new_content.as_deref(), Some("123456"));
}

#[tokio::test]
async fn pictures_together_have_a_limit() {
    let worlds = Worlds::new(&[], &[("a.png", PNG), ("b.png", PNG), ("c.png", PNG)]);
    let size = PNG.len() as u64;
    for (total_picture_bytes, shown) in [
        (2 * size, 2),
        (3 * size - 1, 2),
        (size - 1, 0),
        (3 * size, 3),
    ] {
        let limits = EvidenceLimits {
            total_picture_bytes,
            ..EvidenceLimits::default()
        };
        let artifacts = worlds.artifacts(limits).await;
        let with_data = artifacts
            .iter()
            .filter(|a| a.picture.as_ref().unwrap().data_uri.is_some());
        assert_eq!(with_data.count(), shown);
        let told = artifacts.iter().filter(|a| {
            let mut notes = a.notes.iter();
            notes.any(|note| note.contains("`total_picture_bytes`"))
        });
        assert_eq!(told.count(), 3 - shown);
    }
}

#[tokio::test]
async fn what_was_broken_before_is_shown_as_it_is_now() {
    let broken: &[u8] = b"no document";
    let worlds = Worlds::new(
        &[("a.docx", broken), ("b.docx", DOCX)],
        &[("a.docx", DOCX), ("b.docx", broken)],
    );
    let artifacts = worlds.artifacts(EvidenceLimits::default()).await;
    let [mended, ruined] = &artifacts[..] else {
        panic!("{artifacts:?}");
    };
    assert!(
        mended
            .new_content
            .as_deref()
            .unwrap()
            .contains("First paragraph")
    );
    assert_eq!(mended.diff, None);
    assert!(
        mended.notes[0].starts_with("cannot be read before the change: "),
        "{mended:?}"
    );
    assert_eq!((&ruined.new_content, &ruined.diff), (&None, &None));
    assert!(
        ruined.notes[0].starts_with("cannot be read after the change: "),
        "{ruined:?}"
    );
}

#[tokio::test]
async fn references_are_whole_files_or_parts_and_say_why_they_have_no_text() {
    let worlds = Worlds::new(&[("a.xlsx", XLSX), ("b.docx", b"broken")], &[]);
    let evidence = worlds.evidence(EvidenceLimits::default());
    let wanted = |path: &str, index| WantedFile {
        path: path.to_owned(),
        index,
        source: false,
    };
    let files = evidence
        .initial_files(vec![
            wanted("/a.xlsx", Some(0)),
            wanted("filesystem/a.xlsx", None),
            // A hidden sheet, and one that is not there.
            wanted("a.xlsx", Some(1)),
            wanted("a.xlsx", Some(9)),
            wanted("b.docx", None),
            wanted("c.txt", None),
        ])
        .await
        .unwrap();
    let [sheet, whole, broken] = &files[..] else {
        panic!("{files:?}");
    };
    assert_eq!(
        (sheet.kind, sheet.index, sheet.title.as_deref()),
        ("sheet", Some(0), Some("Data"))
    );
    assert!(
        sheet.text.contains("Apple") && !sheet.text.contains("=== Sheet"),
        "{}",
        sheet.text
    );
    assert_eq!((whole.kind, whole.index), ("file", None));
    assert!(whole.text.contains("=== Sheet: Data ==="), "{}", whole.text);
    assert_eq!((broken.path.as_str(), broken.text.as_str()), ("b.docx", ""));
    assert!(
        broken.notes[0].starts_with("cannot be read: "),
        "{broken:?}"
    );
}

async fn query(evidence: &Evidence, database: &str, sql: &str) -> Result<String, EvidenceError> {
    let answer = evidence.query(Side::Final, database, sql, Object::new());
    answer.await.map(|answer| answer.first().to_string())
}

#[tokio::test]
async fn a_database_is_named_by_alias_path_end_pattern_or_not_at_all() {
    let (one, two) = (
        database("create table t (a); insert into t values (1)"),
        database("create table t (a); insert into t values (2)"),
    );
    let worlds = Worlds::new(&[], &[("data/sales.db", &one)]);
    let evidence = worlds.evidence(EvidenceLimits::default());
    for name in [
        "",
        "main",
        "sales.db",
        "/filesystem/data/sales.db",
        "filesystem_data_sales",
        "*sales*",
    ] {
        assert_eq!(
            query(&evidence, name, "select a from t").await.unwrap(),
            "1",
            "{name}"
        );
    }
    let worlds = Worlds::new(
        &[],
        &[
            ("data/sales.db", &one),
            ("x/sales.sqlite3", &two),
            ("no.db", b"text"),
        ],
    );
    let evidence = worlds.evidence(EvidenceLimits::default());
    assert_eq!(
        query(&evidence, "x/sales.sqlite3", "select a from t")
            .await
            .unwrap(),
        "2"
    );
    for name in ["", "*sales*", "nothing", "no.db"] {
        let error = query(&evidence, name, "select a from t").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "no single database of the world is named `{name}`; there are filesystem_data_sales, filesystem_x_sales"
            ),
        );
    }
}

/// Databases come from agents, queries from authors: neither reaches beyond the copy.
#[tokio::test]
async fn queries_change_nothing_and_end() {
    let bytes = database(
        "create table t (a); insert into t values (1);
         create view v as select a from t;
         create view spy as select readfile('/etc/passwd') from t;
         create trigger tr after insert on t begin delete from t; end;",
    );
    let worlds = Worlds::new(&[], &[("x.db", &bytes)]);
    let evidence = worlds.evidence(EvidenceLimits {
        query_time: Duration::from_secs(1),
        query_value_bytes: 1 << 20,
        ..EvidenceLimits::default()
    });
    assert_eq!(query(&evidence, "", "select a from v").await.unwrap(), "1");
    for (sql, said) in [
        ("insert into t values (2)", "readonly"),
        ("drop table t", "readonly"),
        (
            "attach database '/tmp/x.db' as other",
            "too many attached databases",
        ),
        ("select * from spy", "no such function"),
        ("select load_extension('/tmp/x')", "no"),
        (
            "select length(zeroblob(2000000))",
            "limit `query_value_bytes`",
        ),
    ] {
        let error = query(&evidence, "", sql).await.unwrap_err().to_string();
        assert!(error.contains(said), "{sql}: {error}");
    }
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    let started = Instant::now();
    let error = query(&evidence, "", endless).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the query on `filesystem/x.db` failed: it took more than 1 s (limit `query_time`)"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    let on_disk = std::fs::read(worlds.path("after").join("filesystem/x.db")).unwrap();
    assert!(on_disk == bytes, "the world is as it was");
    let evidence = worlds.evidence(EvidenceLimits {
        laid_out_bytes: bytes.len() as u64 - 1,
        ..EvidenceLimits::default()
    });
    let error = query(&evidence, "", "select 1").await.unwrap_err();
    assert!(
        error.to_string().contains("limit `laid_out_bytes`"),
        "{error}"
    );
}

/// A program in the place of another, which says how often it was asked.
fn programs(folder: &Path) -> std::ffi::OsString {
    std::fs::write(folder.join("page.png"), PNG).unwrap();
    let pdftoppm = "#!/bin/sh\necho x >> \"$(dirname \"$0\")/asked\"\ncp \"$(dirname \"$0\")/page.png\" \"$9-1.png\"\n";
    testkit::script(&folder.join("pdftoppm"), pdftoppm);
    let mut path = folder.as_os_str().to_owned();
    path.push(":/usr/bin:/bin");
    path
}

#[tokio::test]
async fn a_drawing_is_kept_while_there_is_room() {
    let pdf: &[u8] = b"%PDF-1.4";
    let worlds = Worlds::new(&[("a.pdf", pdf)], &[("a.pdf", pdf), ("b/c.pdf", pdf)]);
    for (drawn_bytes, drawn) in [(1 << 20, 3), (0, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let mut limits = EvidenceLimits {
            drawn_bytes,
            ..EvidenceLimits::default()
        };
        limits.extract.program_path = programs(folder.path());
        limits.extract.isolation = extract::IsolationRule::Off;
        let evidence = worlds.evidence(limits);
        for _ in 0..2 {
            for (side, path) in [
                (Side::Initial, "filesystem/a.pdf"),
                (Side::Final, "a.pdf"),
                (Side::Final, "b/c.pdf"),
            ] {
                let drawing = evidence.drawing(side, path).await.unwrap();
                assert_eq!(
                    (drawing.pages.len(), drawing.more, &drawing.problem),
                    (1, false, &None)
                );
            }
        }
        let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
        assert_eq!(asked.lines().count(), drawn);
        let missing = evidence.drawing(Side::Final, "d.pdf").await.unwrap();
        assert_eq!(missing.problem.as_deref(), Some("it is not in the world"));
    }
    // Without the program it is an error, and the owner of the settings has to act.
    let mut limits = EvidenceLimits::default();
    limits.extract.program_path = "/nowhere".into();
    let evidence = worlds.evidence(limits);
    let error = evidence.drawing(Side::Final, "a.pdf").await.unwrap_err();
    assert_eq!(error.owner(), formats::owner::Owner::Configuration);
    assert_eq!(
        error.to_string(),
        "documents cannot be shown as pictures: `pdftoppm` is not installed (it comes with poppler-utils)"
    );
}

/// Each takes seconds; thousands of them must not take hours.
#[tokio::test]
async fn only_some_documents_of_old_formats_are_converted() {
    let soffice = "#!/bin/sh\nfor last; do :; done\ncase \"$last\" in *.txt) exit 0 ;; esac\necho x >> \"$(dirname \"$0\")/asked\"\nmkdir -p out && cp \"$(dirname \"$0\")/made.docx\" out/in.docx\n";
    let folder = tempfile::tempdir().unwrap();
    testkit::script(&folder.path().join("soffice"), soffice);
    std::fs::write(folder.path().join("made.docx"), DOCX).unwrap();
    let old: &[u8] = b"\xd0\xcf\x11\xe0\0";
    let worlds = Worlds::new(
        &[("a.doc", b"\xd0\0")],
        &[("a.doc", old), ("b.odt", old), ("c.txt", b"x")],
    );
    let mut limits = EvidenceLimits {
        conversions: 2,
        ..EvidenceLimits::default()
    };
    limits.extract.program_path = folder.path().as_os_str().to_owned();
    limits.extract.program_path.push(":/usr/bin:/bin");
    limits.extract.isolation = extract::IsolationRule::Off;
    let evidence = worlds.evidence(limits);
    let changes = evidence.changes().await.unwrap();
    // In the order of the paths: both versions of the first file, and then no more.
    let [odt, text, doc] = &changes.artifacts[..] else {
        panic!("{changes:?}");
    };
    assert!(
        doc.new_content
            .as_deref()
            .unwrap()
            .contains("First paragraph")
    );
    assert_eq!(text.new_content.as_deref(), Some("x"));
    assert_eq!(odt.new_content, None);
    let note = "after the change: this .odt document is not read (limit `conversions`)";
    assert!(odt.notes.iter().any(|told| told == note), "{odt:?}");
    let asked = || std::fs::read_to_string(folder.path().join("asked")).unwrap();
    assert_eq!(asked().lines().count(), 2);
    let files = evidence.final_files(|_| true).await.unwrap();
    assert!(files[0].text.contains("First paragraph") && files[1].text.contains("First paragraph"));
    assert_eq!(asked().lines().count(), 4);
}
