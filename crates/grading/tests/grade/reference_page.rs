//! The tables of `docs/grading.md` are those of the registry.

use std::path::Path;

use grading::{Entry, Registry};

/// `text` with what stands between the marks of `name` replaced by `table`.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let (head, rest) = text.split_once(&begin).unwrap();
    let (_, tail) = rest.split_once(&end).unwrap();
    format!("{head}{begin}{table}{end}{tail}")
}

fn keys(entry: &Entry) -> String {
    let properties = entry
        .settings
        .get("properties")
        .and_then(serde_json::Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(|key| format!("`{key}`"))
        .collect();
    names.join(", ")
}

fn table(entries: &[Entry]) -> String {
    let mut table = String::from("| id | what it does | settings |\n| --- | --- | --- |\n");
    for entry in entries {
        table.push_str(&format!(
            "| `{}` | {} | {} |\n",
            entry.id,
            entry.about,
            keys(entry)
        ));
    }
    table
}

#[test]
fn the_page_has_the_tables_of_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grading.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let registry = Registry::builtin();
    let right = with_table(&text, "evals", &table(&registry.evals()));
    let right = with_table(&right, "scoring", &table(&registry.scoring_methods()));
    if std::env::var_os("ARCHIPELAGO_BLESS").is_some() {
        std::fs::write(&path, &right).unwrap();
        return;
    }
    assert_eq!(
        text, right,
        "run this test with ARCHIPELAGO_BLESS=1 to write the tables anew"
    );
}
