//! The changes as text, for people and judges (`spec/grading.md` §4.5).

use std::fmt::Write as _;

use serde_json::Value;

use super::{ContentChanges, Happened, RowChange, TableChange};

impl ContentChanges {
    /// Whether there are rows or members to show.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.members.is_empty()
    }

    /// The changes of tables and members as text: totals first, then each table with a heading,
    /// its schema changes, and a line for each row: `+ {…}`, `- {…}`, `~ {…} -> {…}`.
    #[must_use]
    pub fn to_text(&self, path: &str) -> String {
        let mut text = format!("# changes inside {path}\n");
        if !self.tables.is_empty() {
            let sum = |count: fn(&TableChange) -> u64| self.tables.iter().map(count).sum::<u64>();
            let names: Vec<&str> = self
                .tables
                .iter()
                .map(|table| table.name.as_str())
                .collect();
            let _ = write!(
                text,
                "# rows: +{} -{} ~{}",
                sum(|table| table.added),
                sum(|table| table.removed),
                sum(|table| table.changed),
            );
            if names.iter().any(|name| !name.is_empty()) {
                let _ = write!(text, "; changed: {}", names.join(", "));
            }
            text.push('\n');
        }
        for table in &self.tables {
            table.write(&mut text);
        }
        for member in &self.members {
            let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), |s| s.to_string());
            let _ = writeln!(
                text,
                "{} {} ({} -> {} bytes)",
                mark(member.happened),
                member.name,
                size(member.old_size),
                size(member.new_size)
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "# {note}");
        }
        text
    }
}

impl TableChange {
    fn write(&self, text: &mut String) {
        let name = if self.name.is_empty() {
            "rows"
        } else {
            &self.name
        };
        let word = match self.happened {
            Happened::Added => " (new)",
            Happened::Removed => " (gone)",
            Happened::Changed => "",
        };
        let _ = write!(
            text,
            "\n## {name}{word}: +{} -{} ~{}",
            self.added, self.removed, self.changed
        );
        if self.truncated {
            let _ = write!(text, " (the first {} are shown)", self.rows.len());
        }
        text.push('\n');
        if !self.columns_added.is_empty() || !self.columns_removed.is_empty() {
            let schema = serde_json::json!({
                "added_columns": self.columns_added,
                "removed_columns": self.columns_removed,
            });
            let _ = writeln!(text, "schema_changed: {schema}");
        }
        if let Some(error) = &self.error {
            let _ = writeln!(text, "error: the table could not be compared: {error}");
        }
        for note in &self.notes {
            let _ = writeln!(text, "# {note}");
        }
        for row in &self.rows {
            row.write(text);
        }
    }
}

impl RowChange {
    fn write(&self, text: &mut String) {
        text.push(mark(self.happened));
        text.push(' ');
        if let Some(place) = &self.place {
            let _ = write!(text, "{place}: ");
        }
        let sides: Vec<String> = [&self.before, &self.after]
            .into_iter()
            .flatten()
            .map(|row| Value::Object(row.clone()).to_string())
            .collect();
        text.push_str(&sides.join(" -> "));
        text.push('\n');
    }
}

const fn mark(happened: Happened) -> char {
    match happened {
        Happened::Added => '+',
        Happened::Removed => '-',
        Happened::Changed => '~',
    }
}
