//! What changed inside of files: rows, members, pictures.

use formats::diff::WorldDiff;
use report::text::{Style, diff};
use serde_json::json;

#[test]
fn rows_members_and_pictures_are_shown_under_their_file() {
    let world: WorldDiff = serde_json::from_value(json!({
        "format_version": 1, "files_before": 4, "files_after": 4, "unchanged": 0,
        "changes": [
            {"path": ".apps_data/crm/data.db", "kind": "modified", "old_size": 8192, "new_size": 8192, "tables": [
                {"name": "deals", "kind": "modified", "key": ["id"], "columns_added": ["owner"],
                 "rows_added": 1, "rows_deleted": 1, "rows_modified": 1, "rows": [
                    {"kind": "created", "after": {"id": 7, "stage": "won", "owner": null}},
                    {"kind": "deleted", "before": {"id": 3, "stage": ""}},
                    {"kind": "modified", "before": {"id": 2, "stage": "new"}, "after": {"id": 2, "stage": "lost", "owner": "a"}}
                 ]},
                {"name": "notes", "kind": "created", "rows_added": 5000, "rows_deleted": 0, "rows_modified": 0, "truncated": true,
                 "rows": vec![json!({"kind": "created", "after": {"n": 1}}); 30]},
                {"name": "odd", "kind": "modified", "rows_added": 0, "rows_deleted": 0, "rows_modified": 0, "error": "malformed"}
            ]},
            {"path": "filesystem/a.zip", "kind": "modified", "old_size": 10, "new_size": 20, "members": [
                {"name": "in/x.txt", "kind": "modified", "old_size": 3, "new_size": 4},
                {"name": "\u{1b}[31mevil", "kind": "created", "new_size": 2000}
            ]},
            {"path": "filesystem/book.xlsx", "kind": "modified", "tables": [
                {"name": "Data", "kind": "modified", "rows_added": 0, "rows_deleted": 0, "rows_modified": 1, "rows": [
                    {"kind": "modified", "place": "row 5 (was 4)", "before": {"B4": "40"}, "after": {"B5": "41 {=A5+1}"}}
                ]}
            ]},
            {"path": "filesystem/p.png", "kind": "modified",
             "old_picture": {"mime": "image/png", "width": 3, "height": 2}, "new_picture": {"mime": "image/png", "width": 30, "height": 20}}
        ]
    }))
    .unwrap();
    let text = diff(&world, Style::default());
    let expected = "\
World  4 modified, 0 unchanged
  ~ .apps_data/crm/data.db  8.2 kB
      @@ deals: 1 added, 1 deleted, 1 modified @@
      + columns: owner
      + id 7, stage won, owner null
      - id 3, stage (empty)
      ~ id 2, stage new → lost
      @@ notes (new): 5,000 added, 0 deleted, 0 modified @@
"
    .to_owned()
        + &"      + n 1\n".repeat(20)
        + "        … and 4,980 more rows
      @@ odd: 0 added, 0 deleted, 0 modified @@
        not compared: malformed
  ~ filesystem/a.zip  10 B → 20 B
      ~ in/x.txt  3 B → 4 B
      + evil  2.0 kB
  ~ filesystem/book.xlsx
      @@ Data: 0 added, 0 deleted, 1 modified @@
      ~ row 5 (was 4): B4 40 → B5 41 {=A5+1}
  ~ filesystem/p.png
      - image/png, 3 × 2 pixels
      + image/png, 30 × 20 pixels
";
    assert_eq!(text, expected);
}
