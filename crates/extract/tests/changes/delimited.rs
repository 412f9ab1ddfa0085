//! Rows of csv and tsv files.

use std::fmt::Write as _;

use extract::{ChangeLimits, Content, ExtractError, Inside};
use proptest::prelude::*;

use crate::{changes, limited, lines};

#[test]
fn rows_are_added_removed_and_changed_under_the_names_of_the_columns() {
    let old = "id,name,age\n1,Ann,30\n2,Bob,41\n3,Cy,52\n4,Di,63\n";
    let new = "id,name,age\n1,Ann,30\n2,Bob,42\n4,Di,63\n5,\"Ed, jr\",7\n";
    let found = changes("people.csv", old.as_bytes(), new.as_bytes()).unwrap();
    assert_eq!(found.inside, Inside::Delimited);
    let table = &found.tables[0];
    assert_eq!((table.added, table.removed, table.changed), (1, 1, 1));
    assert_eq!(
        lines(&table.rows),
        [
            r#"~ row 3: {"id":"2","name":"Bob","age":"41"} -> {"id":"2","name":"Bob","age":"42"}"#,
            r#"- row 4: {"id":"3","name":"Cy","age":"52"}"#,
            r#"+ row 5: {"id":"5","name":"Ed, jr","age":"7"}"#,
        ]
    );
    assert_eq!(
        found.to_text("people.csv"),
        "# changes inside people.csv\n# rows: +1 -1 ~1\n\n## rows: +1 -1 ~1\n".to_owned()
            + &lines(&table.rows).join("\n")
            + "\n"
    );
}

#[test]
fn a_new_column_does_not_change_every_row() {
    let old = "id,name\n1,Ann\n2,Bob\n";
    let new = "id,mail,name\n1,a@x,Ann\n2,b@x,Rob\n";
    let found = changes("x.csv", old.as_bytes(), new.as_bytes()).unwrap();
    let table = &found.tables[0];
    assert_eq!(table.columns_added, ["mail"]);
    assert!(table.columns_removed.is_empty());
    assert_eq!((table.added, table.removed, table.changed), (0, 0, 1));
    assert_eq!(
        lines(&table.rows),
        [r#"~ row 3: {"id":"2","name":"Bob"} -> {"id":"2","mail":"b@x","name":"Rob"}"#]
    );
}

#[test]
fn a_file_without_header_numbers_its_columns() {
    let found = changes("x.tsv", b"1\t2\n3\t4\n", b"1\t2\n3\t5\n").unwrap();
    assert_eq!(
        lines(&found.tables[0].rows),
        [r#"~ row 2: {"column 1":"3","column 2":"4"} -> {"column 1":"3","column 2":"5"}"#]
    );
}

#[test]
fn encodings_and_line_ends_are_no_change_of_rows() {
    let text = "name;city\nJürg;Zürich\n";
    let latin: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    let utf16: Vec<u8> = [0xfeff]
        .into_iter()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let marked = [b"\xef\xbb\xbf", text.replace('\n', "\r\n").as_bytes()].concat();
    for other in [latin, utf16, marked] {
        let found = changes("x.csv", text.as_bytes(), &other).unwrap();
        assert!(found.tables.is_empty(), "{:?}", found.tables);
        assert!(
            found.notes[0].contains("the rows are the same"),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn rows_beyond_the_limit_are_counted_and_not_shown() {
    let mut new = "n,v\n".to_owned();
    for n in 0..500 {
        let _ = writeln!(new, "{n},{}", "x".repeat(5000));
    }
    let found = changes("x.csv", b"n,v\n", new.as_bytes()).unwrap();
    let table = &found.tables[0];
    assert_eq!(table.added, 500);
    assert_eq!(table.rows.len(), 100);
    assert!(table.truncated);
    let value = table.rows[0].after.as_ref().unwrap()["v"].as_str().unwrap();
    assert_eq!(
        value,
        format!("{}… [4000 more characters]", "x".repeat(1000))
    );
    assert!(found.to_text("x.csv").contains("(the first 100 are shown)"));

    let limits = ChangeLimits {
        shown_bytes: 3000,
        rows: 300,
        ..ChangeLimits::default()
    };
    let found = limited("x.csv", b"n,v\n", new.as_bytes(), &limits).unwrap();
    let table = &found.tables[0];
    assert_eq!((table.added, table.rows.len()), (299, 2));
    assert_eq!(
        table.notes,
        ["only the first 300 rows are compared (limit `rows`)"]
    );
}

#[test]
fn an_open_quote_ends_in_an_error_that_names_the_limit() {
    let limits = ChangeLimits {
        row_bytes: 1000,
        ..ChangeLimits::default()
    };
    let open = format!("a,b\n1,\"{}", "x\n".repeat(1000));
    let error = limited("x.csv", b"a,b\n", open.as_bytes(), &limits).unwrap_err();
    assert!(
        matches!(
            error,
            ExtractError::Limit {
                limit: "row_bytes",
                ..
            }
        ),
        "{error:?}"
    );
}

/// Half a million rows made while they are read: nothing holds them all.
#[test]
fn long_files_are_compared_as_streams() {
    struct Long {
        changed: bool,
    }
    struct Rows {
        changed: bool,
        next: u32,
        rest: Vec<u8>,
    }
    impl std::io::Read for Rows {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.rest.is_empty() && self.next < 200_000 {
                let n = self.next;
                self.next += 1;
                let value = if self.changed && n == 150_000 { 0 } else { n };
                self.rest = format!("{n},{value},some text that stays\n").into_bytes();
            }
            let count = self.rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.rest[..count]);
            self.rest.drain(..count);
            Ok(count)
        }
    }
    impl Content for Long {
        fn size(&self) -> u64 {
            u64::MAX
        }
        fn read(&self) -> std::io::Result<Box<dyn std::io::Read + '_>> {
            Ok(Box::new(Rows {
                changed: self.changed,
                next: 0,
                rest: Vec::new(),
            }))
        }
    }
    let found = extract::content_changes(
        "x.csv",
        Some(&Long { changed: false }),
        Some(&Long { changed: true }),
        &ChangeLimits::default(),
    )
    .unwrap();
    assert_eq!(
        lines(&found.tables[0].rows),
        [
            r#"~ row 150001: {"column 1":"150000","column 2":"150000","column 3":"some text that stays"} -> {"column 1":"150000","column 2":"0","column 3":"some text that stays"}"#
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// However rows are edited, the counts add up and applying them gives the second file's length.
    #[test]
    fn counts_add_up(old in prop::collection::vec(0_u8..6, 0..30), new in prop::collection::vec(0_u8..6, 0..30)) {
        let file = |rows: &[u8]| rows.iter().map(|row| format!("r{row},same\n")).collect::<String>();
        let (before, after) = (file(&old), file(&new));
        let found = changes("x.csv", before.as_bytes(), after.as_bytes()).unwrap();
        let (added, removed, changed) = found.tables.first().map_or((0, 0, 0), |t| (t.added, t.removed, t.changed));
        prop_assert_eq!(old.len() as u64 + added - removed, new.len() as u64);
        prop_assert!(changed + removed <= old.len() as u64);
        prop_assert_eq!(found.tables.is_empty(), old == new);
    }

    #[test]
    fn nothing_makes_it_panic(old in prop::collection::vec(any::<u8>(), 0..200), new in "[a,;\"\n\r\t]{0,60}") {
        let _ = changes("x.csv", &old, new.as_bytes());
        let _ = changes("x.tsv", new.as_bytes(), &old);
        let _ = changes("x.zip", new.as_bytes(), &old);
    }
}
