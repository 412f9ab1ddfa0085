//! Programs of others: what is asked of them, and what becomes of those that misbehave. Most tests
//! put programs of their own in the place of LibreOffice and `pdftoppm`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod real;

use std::time::{Duration, Instant};

use extract::{DrawError, ExternalProgram, IsolationRule, Limits, draw};

const DOCX: &[u8] = include_bytes!("../fixtures/python-docx.docx");

/// A PNG of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// Makes a PDF of whatever it is given: with the words of the document in it.
const SOFFICE: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        --convert-to) to=${2%%:*}; filter=$2; shift ;;
        --outdir) out=$2; shift ;;
        -env:UserInstallation=file://*) profile=${1#-env:UserInstallation=file://} ;;
    esac
    in=$1; shift
done
grep -q DisableMacrosExecution "$profile/user/registrymodifications.xcu" || exit 4
mkdir -p "$out"
case "$in" in *.txt) printf '%%PDF-' > "$out/in.$to"; exit 0 ;; esac
BEHAVIOUR
{ printf '%%PDF-'; cat "$in"; } > "$out/in.$to"
"#;

/// Draws as many pages as the document says, at most as many as asked.
const PDFTOPPM: &str = r#"#!/bin/sh
[ "$1 $2 $3 $4 $6 $7" = "-png -f 1 -l -scale-to 1754" ] || exit 4
last=$5; in=$8; prefix=$9
draw() { cp "$(dirname "$0")/page.png" "$prefix-$1.png"; }
if grep -q '72 72' "$in" || [ "$(cat "$in")" = "%PDF-" ]; then draw 1; exit 0; fi
BEHAVIOUR
pages=$(sed 's/[^0-9]//g' "$in")
n=1
while [ $n -le $pages ] && [ $n -le $last ]; do draw "$(printf %02d $n)"; n=$((n + 1)); done
"#;

/// A folder with programs of these behaviours, and limits that lead to it.
struct Programs {
    folder: tempfile::TempDir,
    limits: Limits,
}

impl Programs {
    fn new(soffice: &str, pdftoppm: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("page.png"), PNG).unwrap();
        let mut path = folder.path().as_os_str().to_owned();
        path.push(":/usr/bin:/bin");
        let programs = Self {
            folder,
            limits: Limits {
                program_path: path,
                ..Limits::default()
            },
        };
        programs.put("soffice", &SOFFICE.replace("BEHAVIOUR", soffice));
        programs.put("pdftoppm", &PDFTOPPM.replace("BEHAVIOUR", pdftoppm));
        programs
    }

    fn put(&self, name: &str, text: &str) {
        testkit::script(&self.folder.path().join(name), text);
    }

    fn draw(
        &self,
        name: &str,
        content: &str,
        pages: usize,
    ) -> Result<(Vec<usize>, bool), DrawError> {
        draw(name, content.as_bytes(), pages, &self.limits).map(|drawn| {
            for (_, picture) in &drawn.pictures {
                assert_eq!((picture.mime, picture.width), ("image/png", Some(1)));
                assert!(picture.data_uri.is_some());
            }
            (drawn.pictures.iter().map(|(n, _)| *n).collect(), drawn.more)
        })
    }
}

/// A length of sleep that nobody else has.
fn long(number: u32) -> String {
    format!("{}.{number}", 200_000_000 + std::process::id())
}

fn ends(word: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while testkit::runs(word) {
        assert!(Instant::now() < deadline, "`sleep {word}` is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn both(test: impl Fn(IsolationRule)) {
    test(IsolationRule::Off);
    test(IsolationRule::WherePossible);
}

#[test]
fn the_first_pages_come_in_order_and_more_are_told_of() {
    both(|isolation| {
        let mut programs = Programs::new("", "");
        programs.limits.isolation = isolation;
        let all: Vec<usize> = (1..=12).collect();
        for name in ["a.docx", "b.PPTX", "c.xlsx", "d.xlsm", "e.odt", "f.pdf"] {
            assert_eq!(
                programs.draw(name, "12", 20),
                Ok((all.clone(), false)),
                "{name}"
            );
        }
        assert_eq!(programs.draw("a.docx", "12", 12), Ok((all.clone(), false)));
        assert_eq!(
            programs.draw("a.docx", "12", 10),
            Ok((all[..10].to_vec(), true))
        );
        assert_eq!(programs.draw("a.pdf", "12", 1), Ok((vec![1], true)));
    });
}

/// A workbook of a thousand pages costs no more than one of a few.
#[test]
fn only_pages_that_are_looked_at_are_laid_out_where_the_program_can() {
    let export = |module: &str| {
        format!(
            r#"[ "$filter" = 'pdf:{module}_pdf_Export:{{"PageRange":{{"type":"string","value":"1-11"}}}}' ] || exit 5"#
        )
    };
    for (name, module) in [
        ("a.docx", "writer"),
        ("a.odt", "writer"),
        ("a.pptx", "impress"),
        ("a.odp", "impress"),
        ("a.xlsx", "calc"),
        ("a.xls", "calc"),
    ] {
        let programs = Programs::new(&export(module), "");
        assert_eq!(
            programs.draw(name, "3", 10),
            Ok((vec![1, 2, 3], false)),
            "{name}"
        );
    }
    // What another module reads is laid out whole.
    let plain = r#"[ "$filter" = pdf ] || exit 5"#;
    let programs = Programs::new(plain, "");
    assert_eq!(
        programs.draw("page.xls", "3", 10),
        Ok((vec![1, 2, 3], false))
    );
}

#[test]
fn what_is_no_document_is_not_drawn() {
    let programs = Programs::new("", "");
    let error = programs.draw("a.txt", "1", 20).unwrap_err();
    assert_eq!(
        error,
        DrawError::Document("documents of type `txt` are not drawn".to_owned())
    );
    assert_eq!(ExternalProgram::to_draw("txt"), []);
    assert_eq!(ExternalProgram::to_draw("pdf"), [ExternalProgram::Pdftoppm]);
    let both = [ExternalProgram::Soffice, ExternalProgram::Pdftoppm];
    for office in [
        "doc", "docx", "odp", "ods", "odt", "ppt", "pptx", "xls", "xlsm", "xlsx",
    ] {
        assert_eq!(ExternalProgram::to_draw(office), both, "{office}");
    }
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_it_comes_with() {
    let mut programs = Programs::new("", "");
    let remove = |name: &str| std::fs::remove_file(programs.folder.path().join(name)).unwrap();
    remove("pdftoppm");
    // Only its own folder: the machine may have the real ones.
    programs.limits.program_path = programs.folder.path().into();
    let error = programs.draw("a.docx", "1", 20).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`pdftoppm` is not installed (it comes with poppler-utils)"
    );
    std::fs::remove_file(programs.folder.path().join("soffice")).unwrap();
    let error = programs.draw("a.docx", "1", 20).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`soffice` is not installed (it comes with LibreOffice)"
    );
    assert_eq!(error, DrawError::Missing(ExternalProgram::Soffice));
    // A folder that depends on where we are is none.
    programs.limits.program_path = "relative:".into();
    assert!(matches!(
        programs.draw("a.pdf", "1", 20),
        Err(DrawError::Missing(_))
    ));
}

#[test]
fn one_that_hangs_is_ended_with_all_it_started() {
    for (number, isolation) in [(1, IsolationRule::Off), (2, IsolationRule::WherePossible)] {
        let length = long(number);
        let hang = format!("sleep {length} & sleep {length}");
        let mut programs = Programs::new(&hang, "");
        programs.limits.isolation = isolation;
        // Enough for the harmless document on a busy machine.
        programs.limits.convert_time = Duration::from_secs(5);
        let error = programs.draw("a.docx", "1", 20).unwrap_err();
        assert_eq!(
            error,
            DrawError::Document("`soffice` took more than 5 s (limit `convert_time`)".to_owned())
        );
        ends(&length);
        let mut programs = Programs::new("", &hang);
        programs.limits.isolation = isolation;
        programs.limits.page_pictures_time = Duration::from_secs(5);
        let error = programs.draw("a.pdf", "1", 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`pdftoppm` took more than 5 s (limit `page_pictures_time`)"
        );
        ends(&length);
    }
}

/// A program that leaves others behind and ends well.
#[test]
fn nothing_is_left_running_after_a_good_end() {
    both(|isolation| {
        let length = long(3);
        let mut programs = Programs::new(&format!("sleep {length} &"), "");
        programs.limits.isolation = isolation;
        assert_eq!(programs.draw("a.docx", "2", 20), Ok((vec![1, 2], false)));
        ends(&length);
    });
}

#[test]
fn one_that_dies_or_makes_nothing_blames_the_document_if_it_works_with_another() {
    both(|isolation| {
        for (soffice, said) in [
            ("kill -SEGV $$", "made no pdf of it"),
            ("echo 'cannot load it' >&2; exit 0", ": cannot load it)"),
            (": > \"$out/in.pdf\"; exit 0", "made no pdf of it"),
            // Somebody else's file, or a folder, is no output.
            (
                "ln -s /etc/passwd \"$out/in.pdf\"; exit 0",
                "made no pdf of it",
            ),
            ("mkdir \"$out/in.pdf\"; exit 0", "made no pdf of it"),
        ] {
            let mut programs = Programs::new(soffice, "");
            programs.limits.isolation = isolation;
            let error = programs.draw("a.pptx", "1", 20).unwrap_err();
            let DrawError::Document(reason) = error else {
                panic!("{soffice}: {error}");
            };
            assert!(reason.starts_with("`soffice` made no pdf"), "{reason}");
            assert!(reason.contains(said), "{soffice}: {reason}");
        }
        for (pdftoppm, said) in [
            (
                "echo 'Syntax Error: \u{1b}[2Jno page' >&2; exit 1",
                "exit status: 1: Syntax Error: [2Jno page",
            ),
            ("exit 0", "`pdftoppm` drew nothing"),
        ] {
            let mut programs = Programs::new("", pdftoppm);
            programs.limits.isolation = isolation;
            let error = programs.draw("a.pdf", "1", 20).unwrap_err();
            let DrawError::Document(reason) = error else {
                panic!("{pdftoppm}: {error}");
            };
            assert!(reason.contains(said), "{reason}");
        }
    });
}

#[test]
fn one_that_works_with_no_document_is_itself_to_blame() {
    let programs = Programs::new("", "");
    programs.put(
        "soffice",
        "#!/bin/sh\necho 'cannot open shared object file' >&2; exit 127\n",
    );
    let error = programs.draw("a.docx", "1", 20).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`soffice` cannot be used: with a document of ours, `soffice` made no pdf of it (exit status: 127: cannot open shared object file)"
    );
    programs.put("pdftoppm", "#!/nowhere/sh\n");
    let error = programs.draw("a.pdf", "1", 20).unwrap_err();
    let DrawError::Unusable { program, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(program, ExternalProgram::Pdftoppm);
}

#[test]
fn what_it_writes_is_limited() {
    both(|isolation| {
        let many = "n=0; while :; do head -c 100000 /dev/zero > \"$out/$n\"; n=$((n + 1)); done";
        let mut programs = Programs::new(many, "");
        programs.limits.isolation = isolation;
        programs.limits.convert_bytes = 1 << 20;
        let error = programs.draw("a.docx", "1", 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`soffice` wrote more than 1048576 bytes (limit `convert_bytes`)"
        );
        // One file is held by the system itself, before we look.
        let one = "head -c 100000000 /dev/zero > \"$out/in.pdf\"; exit 0";
        let mut programs = Programs::new(one, "");
        programs.limits.isolation = isolation;
        programs.limits.convert_bytes = 1 << 20;
        assert!(matches!(
            programs.draw("a.docx", "1", 20),
            Err(DrawError::Document(_))
        ));
        // What is no picture is left out, the others are not.
        let large = "head -c 6000000 /dev/zero > \"$prefix-2.png\"; draw 1; draw 3; exit 0";
        let mut programs = Programs::new("", large);
        programs.limits.isolation = isolation;
        assert_eq!(programs.draw("a.pdf", "", 20), Ok((vec![1, 3], false)));
    });
}

/// Nothing of this program's environment, and a home of its own.
#[test]
fn it_gets_no_variables_of_ours() {
    let check = r#"
        count=$(env | grep -c -v -E '^(PATH|HOME|TMPDIR|LANG|PWD|SHLVL|_|OLDPWD)=')
        [ "$count" = 0 ] && [ "$HOME" = "$TMPDIR" ] && [ -d "$HOME/profile" ] || exit 5"#;
    both(|isolation| {
        let mut programs = Programs::new(check, "");
        programs.limits.isolation = isolation;
        assert_eq!(programs.draw("a.docx", "1", 20), Ok((vec![1], false)));
    });
}

#[test]
fn isolated_it_sees_neither_files_of_others_nor_the_network() {
    let works = confinement::Isolation::by(IsolationRule::Required).is_ok();
    if !testkit::available("bubblewrap that may make namespaces", works) {
        return;
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    let check = format!(
        "[ -e {} ] && exit 5; [ \"$(ls /sys/class/net 2>/dev/null | wc -l)\" -ge 0 ] && grep -q ':' /proc/net/dev && [ \"$(grep -c : /proc/net/dev)\" = 1 ] || exit 6; touch /usr/x 2>/dev/null && exit 7",
        secret.path().display()
    );
    let mut programs = Programs::new(&check, "");
    programs.limits.isolation = IsolationRule::Required;
    assert_eq!(programs.draw("a.docx", "1", 20), Ok((vec![1], false)));
}

#[test]
fn documents_of_old_formats_are_read_where_they_can_be_converted() {
    // What the program makes of it is a document of today, which is read as one.
    let docx = "cp \"$(dirname \"$0\")/made.$to\" \"$out/in.$to\"; exit 0";
    let programs = Programs::new(docx, "");
    std::fs::write(programs.folder.path().join("made.docx"), DOCX).unwrap();
    let expected = extract::extract("x.docx", DOCX, &Limits::default()).unwrap();
    assert!(!expected.text.is_empty());
    for name in ["a.doc", "a.ODT"] {
        let document = extract::extract(name, b"\xd0\xcf\x11\xe0\0", &programs.limits).unwrap();
        assert_eq!(document.text, expected.text, "{name}");
        let old = extract::extension(name);
        let note = format!("a .{old} document, read as the .docx that LibreOffice makes of it");
        assert_eq!(document.notes.last(), Some(&note));
    }
    // Without the program, that is said; with a broken document, that.
    let nowhere = Limits {
        program_path: "/nowhere".into(),
        ..Limits::default()
    };
    let document = extract::extract("a.ppt", b"\xd0\xcf\x11\xe0\0", &nowhere).unwrap();
    assert_eq!(document.text, "");
    assert_eq!(
        document.notes,
        ["text of .ppt documents is read only where LibreOffice (`soffice`) is installed"]
    );
    let programs = Programs::new("exit 0", "");
    let error = extract::extract("a.odp", b"\xd0\xcf\x11\xe0\0", &programs.limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the odp document cannot be converted: `soffice` made no pptx of it (exit status: 0)"
    );
    // Text under such a name needs nobody.
    let document = extract::extract("a.doc", b"plain words", &nowhere).unwrap();
    assert_eq!(
        (document.text.as_str(), document.notes.len()),
        ("plain words", 0)
    );
}
