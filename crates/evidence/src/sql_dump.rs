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
    for statement in statements(dump) {
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

/// The statements of `dump`: split at semicolons outside of texts and comments. Backslash commands
/// of `psql` are left out.
fn statements(dump: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut current = String::new();
    let mut chars = dump.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => {
                quote = None;
                current.push(c);
            }
            // MySQL escapes quotes by a backslash.
            (Some('\''), '\\') if chars.peek() == Some(&'\'') => {
                chars.next();
                current.push_str("''");
            }
            (Some(_), c) => current.push(c),
            (None, '\'' | '"' | '`') => {
                quote = Some(c);
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
    fn a_postgresql_dump_is_loaded() {
        let dump = "\\connect x\nBEGIN;\nCREATE TABLE public.t (id integer DEFAULT nextval('s'::regclass), n text);\n\
            ALTER TABLE public.t OWNER TO me;\nINSERT INTO public.t (id, n) VALUES (7, 'x');\nCOMMIT;";
        assert_eq!(count(dump, "select id from t"), 7);
    }
}
