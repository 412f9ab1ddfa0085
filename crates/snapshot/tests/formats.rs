//! The same world as `tar.gz`, `tar.zst` and zip, and databases that are in use meanwhile.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use snapshot::archive::{ArchiveFormat, PackOptions, PackReport, pack, unpack_tar_gz};
use snapshot::{APPS_DATA, FILESYSTEM, Limits, World, WorldError};
use support::write;

fn pack_as(files: &Path, apps: &Path, options: &PackOptions) -> (Vec<u8>, PackReport) {
    let mut out = Vec::new();
    let report = pack(&[(FILESYSTEM, files), (APPS_DATA, apps)], &mut out, options).unwrap();
    (out, report)
}

fn format(format: ArchiveFormat) -> PackOptions {
    PackOptions {
        format,
        empty_directories: true,
        ..PackOptions::default()
    }
}

/// Answers whether `program` is there; else says so, or fails where everything is required.
fn have(program: &str) -> bool {
    let there = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    testkit::available(program, there)
}

#[test]
fn every_format_holds_the_same_world() {
    let home = tempfile::tempdir().unwrap();
    let (files, apps) = (home.path().join("f"), home.path().join("a"));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_001);
    for name in [
        &b"a.txt"[..],
        b"d/\xff\xfe.bin",
        "日本/ä.txt".as_bytes(),
        b"empty.txt",
    ] {
        let content = if name == b"empty.txt" { &b""[..] } else { name };
        let path = write(&files, name, content);
        std::fs::File::open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let large = support::noise(3 << 20);
    write(&apps, "large", &large);
    std::fs::create_dir_all(files.join("nothing/in here")).unwrap();
    let mut seen = Vec::new();
    for kind in ArchiveFormat::ALL {
        let (archive, report) = pack_as(&files, &apps, &format(kind));
        assert_eq!((report.members, report.skipped.len()), (6, 0), "{kind:?}");
        // The same world, the same bytes.
        assert_eq!(pack_as(&files, &apps, &format(kind)).0, archive, "{kind:?}");
        let path = home.path().join(format!("world.{}", kind.name()));
        std::fs::write(&path, &archive).unwrap();
        let world = World::open(&path).unwrap();
        let entries: Vec<_> = world
            .entries()
            .iter()
            .map(|entry| {
                let content = world.read_entry(entry, 1 << 30).unwrap();
                (
                    entry.raw_path().to_vec(),
                    entry.kind(),
                    entry.mode(),
                    content,
                )
            })
            .collect();
        let odd = entries
            .iter()
            .find(|entry| entry.0 == b"filesystem/d/\xff\xfe.bin")
            .unwrap();
        assert_eq!(odd.3, b"d/\xff\xfe.bin");
        let a = world.get("filesystem/a.txt").unwrap();
        assert_eq!(a.modified(), Some(time), "{kind:?}");
        assert_eq!(world.read(".apps_data/large", 1 << 30).unwrap(), large);
        assert!(world.get("filesystem/nothing/in here").is_some());
        seen.push(entries);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
}

#[test]
fn other_programs_read_what_we_write() {
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("f");
    write(&files, "a/b.txt", "some text\n");
    write(&files, "noise", support::noise(300_000));
    let out = |kind: ArchiveFormat| {
        let path = home.path().join(kind.name());
        let (archive, _) = pack_as(&files, &home.path().join("none"), &format(kind));
        std::fs::write(&path, archive).unwrap();
        path
    };
    let check = |program: &str, args: &[&str], path: &Path| {
        if have(program) {
            let output = Command::new(program).args(args).arg(path).output().unwrap();
            assert!(output.status.success(), "{program}: {output:?}");
        }
    };
    check("gzip", &["-t"], &out(ArchiveFormat::TarGz));
    check("zstd", &["-tq"], &out(ArchiveFormat::TarZst));
    let python = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                  assert z.read('filesystem/a/b.txt') == b'some text\\n'\n\
                  assert z.namelist() == ['filesystem/a/b.txt', 'filesystem/noise']";
    check("python3", &["-c", python], &out(ArchiveFormat::Zip));
}

#[test]
fn a_zstd_archive_can_be_unpacked_and_a_damaged_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("f");
    write(&files, "a.txt", support::noise(100_000));
    let (archive, _) = pack_as(
        &files,
        &home.path().join("none"),
        &format(ArchiveFormat::TarZst),
    );
    let target = home.path().join("target");
    unpack_tar_gz(archive.as_slice(), &target, &Limits::default()).unwrap();
    assert_eq!(
        std::fs::read(target.join("filesystem/a.txt")).unwrap(),
        support::noise(100_000)
    );
    for cut in [4, 20, archive.len() / 2, archive.len() - 1] {
        let target = home.path().join(format!("cut-{cut}"));
        unpack_tar_gz(&archive[..cut], &target, &Limits::default()).unwrap_err();
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0, "{cut}");
    }
    let mut flipped = archive.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let path = home.path().join("flipped");
    std::fs::write(&path, flipped).unwrap();
    assert!(matches!(
        World::open(&path).unwrap_err(),
        WorldError::Archive { .. }
    ));
}

/// A program that commits without end: each transaction writes one row and adds the same to a sum, so a
/// torn copy shows. Asked by a line, it says how many are done.
const WRITER: &str = r#"
import sqlite3, sys, threading, time
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("PRAGMA wal_autocheckpoint=7")
db.execute("PRAGMA synchronous=OFF")
db.execute("CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, text TEXT)")
db.execute("CREATE TABLE IF NOT EXISTS total (n INTEGER)")
db.execute("INSERT INTO total VALUES (0)")
done = 0
def answer():
    for _ in sys.stdin:
        print(done, flush=True)
threading.Thread(target=answer, daemon=True).start()
while True:
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO row VALUES (?, ?)", (done + 1, "x" * (done % 3000)))
    db.execute("UPDATE total SET n = n + 1")
    db.execute("COMMIT")
    done += 1
    time.sleep(0.0002)
"#;

/// Opens the copy as its reader would, and answers how many transactions it has.
const READER: &str = r#"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
rows, last = db.execute("SELECT count(*), max(n) FROM row").fetchone()
total, = db.execute("SELECT n FROM total").fetchone()
assert rows == last == total, (rows, last, total)
print(total)
"#;

struct Writer {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Writer {
    fn start(database: &Path, mode: &str) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", WRITER])
            .arg(database)
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// How many transactions are committed.
    fn done(&mut self) -> u64 {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
        self.lines.next().unwrap().unwrap().parse().unwrap()
    }

    /// Waits until there are more than so many.
    fn past(&mut self, count: u64) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let done = self.done();
            if done > count {
                return done;
            }
            assert!(Instant::now() < deadline, "the writer does not go on");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn transactions(database: &Path) -> u64 {
    let output = Command::new("python3")
        .args(["-c", READER])
        .arg(database)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn extract(archive: &[u8], to: &Path) -> PathBuf {
    unpack_tar_gz(archive, to, &Limits::default()).unwrap();
    to.join("filesystem")
}

#[test]
fn databases_are_captured_whole_while_they_are_written() {
    if !have("python3") {
        return;
    }
    for mode in ["WAL", "DELETE", "TRUNCATE"] {
        let home = tempfile::tempdir().unwrap();
        let files = home.path().join("f");
        std::fs::create_dir(&files).unwrap();
        let mut writer = Writer::start(&files.join("app.db"), mode);
        for round in 0..4 {
            let before = writer.past(0);
            let options = PackOptions {
                reproducible: round % 2 == 0,
                database_patience: Duration::from_secs(30),
                ..PackOptions::default()
            };
            let (archive, report) = pack_as(&files, &home.path().join("none"), &options);
            assert_eq!(report.unlocked, [""; 0], "{mode}");
            let copy = extract(&archive, &home.path().join(round.to_string()));
            assert!(!copy.join("app.db-shm").exists());
            let captured = transactions(&copy.join("app.db"));
            // Everything that was committed before is in it.
            assert!(
                captured >= before,
                "{mode}: {captured} of at least {before}"
            );
            // The writer goes on.
            writer.past(captured);
        }
    }
}

#[test]
fn what_was_committed_last_is_in_the_log_after_a_crash() {
    if !have("python3") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("f");
    std::fs::create_dir(&files).unwrap();
    let mut writer = Writer::start(&files.join("app.db"), "WAL");
    let before = writer.past(10);
    drop(writer);
    let (archive, report) = pack_as(&files, &home.path().join("none"), &PackOptions::default());
    assert_eq!(report.members, 2);
    let copy = extract(&archive, &home.path().join("copy"));
    assert!(transactions(&copy.join("app.db")) >= before);
    // A second one has the same bytes: nothing in the world was touched.
    let again = pack_as(&files, &home.path().join("none"), &PackOptions::default()).0;
    assert_eq!(archive, again);
}

#[test]
fn a_database_that_stays_locked_is_captured_and_reported() {
    if !have("python3") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("f");
    std::fs::create_dir(&files).unwrap();
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                  db.execute('CREATE TABLE t (n)')\ndb.execute('BEGIN EXCLUSIVE')\n\
                  print('locked', flush=True)\nsys.stdin.read()";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(files.join("app.db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut word)
        .unwrap();
    let options = PackOptions {
        database_patience: Duration::from_millis(50),
        ..PackOptions::default()
    };
    let (archive, report) = pack_as(&files, &home.path().join("none"), &options);
    assert_eq!(report.unlocked, ["filesystem/app.db"]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(
        extract(&archive, &home.path().join("copy"))
            .join("app.db")
            .exists()
    );
}

#[test]
fn files_that_only_look_like_companions_stay() {
    let home = tempfile::tempdir().unwrap();
    let files = home.path().join("f");
    write(&files, "notes", "no database");
    for name in ["notes-wal", "notes-shm", "other-journal"] {
        write(&files, name, name);
    }
    let (_, report) = pack_as(&files, &home.path().join("none"), &PackOptions::default());
    assert_eq!(report.members, 4);
}
