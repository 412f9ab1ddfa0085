//! Loading dumps of other databases into SQLite, as far as that goes (`spec/grading.md` §6.3.9).

use std::sync::LazyLock;

use regex::Regex;
use rusqlite::Connection;

/// Statements and clauses that mean nothing to SQLite.
static IGNORED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?is)^\s*(pragma|begin|start\s+transaction|commit|end|rollback|set|lock|unlock|use|grant|revoke|comment|select\s+pg_catalog|alter\s+sequence|create\s+sequence|alter\s+table\s+.*owner\s+to)\b",
    )
    .ok()
});
static CLAUSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?is)\bauto_?increment\b(\s*=\s*\d+)?|\bdefault\s+nextval\([^)]*\)|\)\s*engine\s*=[^;]*$",
    )
    .ok()
});
static SCHEMA: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bpublic\.").ok());

/// Runs the statements of `dump`; those that fail are passed over.
pub(crate) fn load(connection: &Connection, dump: &str) {
    let (statements, copied) = split(dump);
    for statement in statements {
        if IGNORED.as_ref().is_some_and(|r| r.is_match(&statement)) {
            continue;
        }
        // Data is not rewritten: what looks like a clause in it is a value.
        let is_data = statement.trim_start().to_lowercase().starts_with("insert");
        let statement = match (CLAUSES.as_ref(), SCHEMA.as_ref()) {
            (Some(clauses), Some(schema)) if !is_data => {
                let text = clauses.replace_all(&statement, |found: &regex::Captures<'_>| {
                    // The end of a table definition keeps its bracket.
                    if found[0].starts_with(')') { ")" } else { "" }
                });
                schema.replace_all(&text, "").into_owned()
            }
            _ => without_schema(statement),
        };
        if let Err(error) = connection.execute_batch(&statement) {
            tracing::debug!(%error, "a statement of a dump is passed over");
        }
    }
    for block in copied {
        if let Err(error) = insert(connection, &block) {
            tracing::debug!(%error, target = block.target, "rows of a dump are passed over");
        }
    }
}

/// Puts the rows of a `COPY` block into their table.
fn insert(connection: &Connection, block: &Copied) -> rusqlite::Result<()> {
    let schema = SCHEMA
        .as_ref()
        .map(|schema| schema.replace(&block.target, ""));
    let target = schema.unwrap_or_else(|| block.target.as_str().into());
    let width = block.rows.first().map_or(0, Vec::len);
    let places = vec!["?"; width].join(", ");
    let mut insert = connection.prepare(&format!("insert into {target} values ({places})"))?;
    for row in &block.rows {
        insert.execute(rusqlite::params_from_iter(row))?;
    }
    Ok(())
}

/// An `INSERT` without `public.` in front of its table.
fn without_schema(statement: String) -> String {
    let Some(target) = statement.to_lowercase().find("into public.") else {
        return statement;
    };
    // Only at the place of the table, not in a value.
    if statement[..target].trim().eq_ignore_ascii_case("insert") {
        let table = target + "into ".len();
        return format!(
            "{}{}",
            &statement[..table],
            &statement[table + "public.".len()..]
        );
    }
    statement
}

/// A `COPY` block of PostgreSQL.
pub(crate) struct Copied {
    /// The table and its columns, as they stand after `COPY`.
    pub(crate) target: String,
    /// `None` is no value.
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// The statements of `dump` and its blocks of data.
pub(crate) fn split(dump: &str) -> (Vec<String>, Vec<Copied>) {
    let mut copied = Vec::new();
    let mut rest = String::with_capacity(dump.len());
    let mut lines = dump.lines();
    while let Some(line) = lines.next() {
        let Some(target) = copy_target(line) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let rows = lines.by_ref().take_while(|line| *line != "\\.");
        copied.push(Copied {
            target: target.to_owned(),
            rows: rows
                .map(|line| line.split('\t').map(copied_cell).collect())
                .collect(),
        });
    }
    (statements(&rest), copied)
}

fn copy_target(line: &str) -> Option<&str> {
    let target = line.strip_prefix("COPY ")?;
    let end = target.to_lowercase().rfind(" from stdin")?;
    target.get(..end)
}

fn copied_cell(cell: &str) -> Option<String> {
    if cell == "\\N" {
        return None;
    }
    let mut text = String::with_capacity(cell.len());
    let mut chars = cell.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(unescaped(chars.next().unwrap_or('\\'))),
            c => text.push(c),
        }
    }
    Some(text)
}

/// What a backslash and `c` stand for.
const fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        other => other,
    }
}

/// Whether backslashes in texts are escapes, as in dumps of MySQL.
fn has_escapes(dump: &str) -> bool {
    let lower = dump.to_lowercase();
    dump.contains('`') || lower.contains("engine=") || lower.contains("auto_increment")
}

/// The statements of `dump`: split at semicolons outside of texts and comments, escapes in texts
/// resolved. Backslash commands of `psql` are left out.
fn statements(dump: &str) -> Vec<String> {
    let escapes = has_escapes(dump);
    let mut statements = Vec::new();
    let mut current = String::new();
    let mut chars = dump.chars().peekable();
    let mut quote: Option<char> = None;
    // PostgreSQL writes texts with escapes as E'…'.
    let mut escaping = false;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => {
                quote = None;
                current.push(c);
            }
            (Some('\''), '\\') if escaping => match chars.next().map(unescaped) {
                Some('\'') => current.push_str("''"),
                Some(c) => current.push(c),
                None => {}
            },
            (Some(_), c) => current.push(c),
            (None, '\'' | '"' | '`') => {
                quote = Some(c);
                let is_marked = c == '\'' && ends_in_mark(&current);
                if is_marked {
                    current.pop();
                }
                escaping = escapes || is_marked;
                current.push(c);
            }
            (None, '-') if chars.peek() == Some(&'-') => {
                let _ = chars.by_ref().find(|c| *c == '\n');
                current.push('\n');
            }
            (None, '\\') if current.trim().is_empty() => {
                let _ = chars.by_ref().find(|c| *c == '\n');
            }
            (None, '/') if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                let _ = chars.by_ref().find(|c| {
                    let ends = last == '*' && *c == '/';
                    last = *c;
                    ends
                });
            }
            (None, ';') => statements.push(std::mem::take(&mut current)),
            (None, c) => current.push(c),
        }
    }
    statements.push(current);
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

/// Whether `text` ends in the `E` that stands before a text with escapes.
fn ends_in_mark(text: &str) -> bool {
    let mut last = text.chars().rev();
    matches!(last.next(), Some('e' | 'E')) && last.next().is_none_or(|c| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(dump: &str, sql: &str) -> i64 {
        let connection = Connection::open_in_memory().unwrap();
        load(&connection, dump);
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_mysql_dump_is_loaded() {
        let dump = "-- MySQL dump; with a semicolon\nSET NAMES utf8;\n/*!40101 SET x */;\n\
            CREATE TABLE `deals` (`id` int NOT NULL AUTO_INCREMENT, `name` varchar(9), PRIMARY KEY (`id`)) ENGINE=InnoDB AUTO_INCREMENT=3;\n\
            INSERT INTO `deals` VALUES (1,'it\\'s; public.x'),(2,'b');\nNONSENSE;\n";
        assert_eq!(count(dump, "select count(*) from deals"), 2);
        assert_eq!(
            count(
                dump,
                "select count(*) from deals where name = 'it''s; public.x'"
            ),
            1
        );
    }

    #[test]
    fn escapes_are_resolved_and_rows_of_copy_are_loaded() {
        let mysql =
            "CREATE TABLE `t` (a text);\nINSERT INTO `t` VALUES ('ends in \\\\'),('x\\ny');";
        assert_eq!(
            count(
                mysql,
                "select count(*) from t where a in ('ends in \\', 'x\ny')"
            ),
            2
        );
        let postgresql = "CREATE TABLE public.t (id integer, n text);\nCOPY public.t (id, n) FROM stdin;\n\
            4\tit's; a\\tb\n5\t\\N\n\\.\nINSERT INTO t VALUES (6, E'it\\'s');";
        assert_eq!(count(postgresql, "select sum(id) from t"), 15);
        assert_eq!(
            count(postgresql, "select id from t where n = 'it''s; a\tb'"),
            4
        );
        assert_eq!(count(postgresql, "select id from t where n = 'it''s'"), 6);
    }

    #[test]
    fn a_postgresql_dump_is_loaded() {
        let dump = "\\connect x\nBEGIN;\nCREATE TABLE public.t (id integer DEFAULT nextval('s'::regclass), n text);\n\
            ALTER TABLE public.t OWNER TO me;\nINSERT INTO public.t (id, n) VALUES (7, 'x');\nCOMMIT;";
        assert_eq!(count(dump, "select id from t"), 7);
    }
}
