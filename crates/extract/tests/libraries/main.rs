//! Documents made by openpyxl, pandas, python-docx, python-pptx, reportlab, xlwt and LibreOffice
//! (`make.py`), read by us, and compared with what those libraries read from them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use extract::{Document, Limits};
use serde::Deserialize;

/// Time for making all documents; LibreOffice starts ten times.
const MAKING: Duration = Duration::from_secs(420);

#[derive(Deserialize)]
struct Made {
    missing: Vec<String>,
    #[serde(flatten)]
    files: BTreeMap<String, Read>,
}

/// What a library reads from a file.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Read {
    Workbook {
        sheets: Vec<Sheet>,
        hidden: Vec<String>,
    },
    Table {
        rows: Vec<Vec<String>>,
    },
    Document {
        lines: Vec<String>,
        header: Vec<String>,
    },
    Slides {
        slides: Vec<Slide>,
    },
    Pdf {
        pages: Vec<String>,
    },
}

#[derive(Deserialize)]
struct Sheet {
    title: String,
    rows: Vec<Vec<String>>,
    /// By coordinate; `None` where the library reads no formulas.
    formulas: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Slide {
    lines: Vec<String>,
    notes: String,
}

/// The folder of the documents and what the libraries read; `None`, said aloud, where there are no
/// libraries.
fn made() -> Option<&'static (tempfile::TempDir, Made)> {
    static MADE: OnceLock<Option<(tempfile::TempDir, Made)>> = OnceLock::new();
    MADE.get_or_init(|| {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = std::env::var_os("ARCHIPELAGO_DOCUMENTS_PYTHON").map_or_else(
            || crate_folder.join("../../target/ci/venv-documents/bin/python"),
            PathBuf::from,
        );
        let installed = format!("{} (.ci/peers installs it)", python.display());
        if !testkit::available(&installed, python.exists()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        run(Command::new(python)
            .arg("-W")
            .arg("ignore")
            .arg(crate_folder.join("tests/libraries/make.py"))
            .arg(folder.path()));
        let read = std::fs::read_to_string(folder.path().join("read.json")).unwrap();
        let made: Made = serde_json::from_str(&read).unwrap();
        for program in &made.missing {
            let _ = testkit::available(&format!("`{program}`, for its documents,"), false);
        }
        Some((folder, made))
    })
    .as_ref()
}

fn run(command: &mut Command) {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + MAKING;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("making the documents takes more than {MAKING:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn ours(folder: &Path, name: &str) -> Document {
    let bytes = std::fs::read(folder.join(name)).unwrap();
    extract::extract(name, &bytes, &Limits::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs `check` on each file for which `pick` finds something to compare; `least` of them exist.
fn each<'m, T: 'm>(
    least: usize,
    pick: impl Fn(&'m Read) -> Option<T>,
    check: impl Fn(&str, Document, T),
) {
    let Some((folder, made)) = made() else {
        return;
    };
    let mut count = 0;
    for (name, read) in &made.files {
        if let Some(theirs) = pick(read) {
            check(name, ours(folder.path(), name), theirs);
            count += 1;
        }
    }
    assert!(count >= least, "{count} of {least} files");
}

/// The cells of a sheet's text by their coordinates, and the formulas in them.
fn cells(text: &str) -> (BTreeMap<(usize, usize), String>, BTreeMap<String, String>) {
    let (mut values, mut formulas) = (BTreeMap::new(), BTreeMap::new());
    let mut row = 0;
    for line in text.lines().take_while(|line| !line.starts_with("=== ")) {
        if let Some(gap) = line
            .strip_prefix('[')
            .and_then(|l| l.strip_suffix(" empty rows]"))
        {
            row += gap.parse::<usize>().unwrap();
            continue;
        }
        for (column, cell) in line.split('\t').enumerate() {
            let (value, formula) = match cell.split_once("{=") {
                Some((value, rest)) => (value.trim(), rest.rsplit_once("; ").map(|(f, _)| f)),
                None => (cell, None),
            };
            if !value.is_empty() {
                values.insert((row, column), value.to_owned());
            }
            if let Some(formula) = formula {
                let letter = char::from(b'A' + u8::try_from(column).unwrap());
                formulas.insert(format!("{letter}{}", row + 1), formula.to_owned());
            }
        }
        row += 1;
    }
    (values, formulas)
}

#[test]
fn workbooks() {
    let pick = |read: &'static Read| match read {
        Read::Workbook { sheets, hidden } => Some((sheets, hidden)),
        _ => None,
    };
    each(3, pick, |name, document, (sheets, hidden)| {
        let titles: Vec<&str> = document.parts.iter().map(|p| p.title.as_str()).collect();
        let theirs: Vec<&str> = sheets.iter().map(|s| s.title.as_str()).collect();
        assert_eq!(titles, theirs, "{name}");
        for sheet in hidden {
            let note = document
                .notes
                .iter()
                .any(|note| note.starts_with("hidden sheets are left out") && note.contains(sheet));
            assert!(note, "{name}: {:?}", document.notes);
            assert!(!document.text.contains("secret"), "{name}");
        }
        for (part, sheet) in document.parts.iter().zip(sheets) {
            let mut theirs = BTreeMap::new();
            for (row, values) in sheet.rows.iter().enumerate() {
                for (column, value) in values.iter().enumerate() {
                    if !value.is_empty() {
                        theirs.insert((row, column), value.clone());
                    }
                }
            }
            let (values, formulas) = cells(&part.text);
            let (values, theirs) = (numbers(values), numbers(theirs));
            assert_eq!(values, theirs, "{name}, {}", sheet.title);
            if let Some(theirs) = &sheet.formulas {
                assert_eq!(&formulas, theirs, "{name}, {}", sheet.title);
            }
        }
    });
}

/// Numbers in one way of writing them: `1e-07` is `0.0000001`.
fn numbers(cells: BTreeMap<(usize, usize), String>) -> BTreeMap<(usize, usize), String> {
    let plain = |text: String| match text.parse::<f64>() {
        Ok(number) => format!("{number}"),
        Err(_) => text,
    };
    cells
        .into_iter()
        .map(|(place, text)| (place, plain(text)))
        .collect()
}

#[test]
fn tables() {
    let pick = |read: &'static Read| match read {
        Read::Table { rows } => Some(rows),
        _ => None,
    };
    each(8, pick, |name, document, rows| {
        let theirs: Vec<String> = rows.iter().map(|row| row.join("\t")).collect();
        assert_eq!(document.text.trim_end(), theirs.join("\n"), "{name}");
    });
}

#[test]
fn texts() {
    let pick = |read: &'static Read| match read {
        Read::Document { lines, header } => Some((lines, header)),
        _ => None,
    };
    each(1, pick, |name, document, (lines, header)| {
        let (body, rest) = document.text.split_once("=== HEADERS").unwrap();
        // Marks of headings and list items stand in front of the words.
        let ours: Vec<&str> = body
            .lines()
            .map(|line| line.trim_start().trim_start_matches(['#', '-']).trim())
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(ours, *lines, "{name}");
        for line in header {
            assert!(rest.contains(line.as_str()), "{name}: {rest}");
        }
    });
}

#[test]
fn slides() {
    let pick = |read: &'static Read| match read {
        Read::Slides { slides } => Some(slides),
        _ => None,
    };
    each(1, pick, |name, document, slides| {
        assert_eq!(document.parts.len(), slides.len(), "{name}");
        for (part, slide) in document.parts.iter().zip(slides) {
            let (shapes, notes) = match part.text.split_once("--- Notes ---\n") {
                Some((shapes, notes)) => (shapes, notes.trim()),
                None => (part.text.as_str(), ""),
            };
            let ours: Vec<&str> = shapes.lines().map(str::trim).collect();
            assert_eq!(ours, slide.lines, "{name}");
            assert_eq!(notes, slide.notes, "{name}");
        }
    });
}

#[test]
fn pages() {
    let pick = |read: &'static Read| match read {
        Read::Pdf { pages } => Some(pages),
        _ => None,
    };
    each(3, pick, |name, document, pages| {
        assert_eq!(document.pages, Some(pages.len()), "{name}");
        let mut ours: Vec<String> = Vec::new();
        for line in document.text.lines() {
            if line.starts_with("=== Page ") {
                ours.push(String::new());
            } else if let Some(page) = ours.last_mut() {
                // Where spaces stand in a PDF is a matter of opinion; which letters, is not.
                page.extend(line.chars().filter(|c| !c.is_whitespace()));
            }
        }
        assert_eq!(ours, *pages, "{name}");
    });
}
