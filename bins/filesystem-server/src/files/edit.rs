//! `edit_file`: replaces a passage of a text file.

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{open, replace, require_file_path, write};
use crate::tools::{Call, Output, ToolError, parse};

const WHAT: &str = "edit file";

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    old_text: String,
    new_text: String,
    replace_all: bool,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments {
        file_path: path,
        old_text,
        new_text,
        replace_all,
    } = parse(arguments)?;
    require_file_path(&path)?;
    if old_text.is_empty() {
        return Err(ToolError::failed(
            "old_text is empty: give the passage to replace, or use write_file",
        ));
    }
    if old_text == new_text {
        return Err(ToolError::failed(
            "old_text and new_text are the same: nothing would change",
        ));
    }
    let world = call
        .root
        .open()
        .map_err(|error| ToolError::path(&error, WHAT, &path))?;
    let content = open::read(&world, &path, call.limits.max_text_bytes, "max_text_bytes")
        .map_err(|error| error.into_tool_error(WHAT, &path))?;
    let before = String::from_utf8(content.bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        ToolError::failed(format!(
            "Failed to {WHAT}: {path}: not UTF-8 text (at byte {position})"
        ))
    })?;
    let (after, count) = replaced(&before, &old_text, &new_text, replace_all)
        .map_err(|problem| ToolError::failed(format!("Failed to {WHAT}: {path}: {problem}")))?;
    write::check_size(call, &path, &after, WHAT)?;
    replace::put(
        &world,
        &content.relative,
        after.as_bytes(),
        Some(content.permissions),
    )
    .map_err(|error| ToolError::path(&error.into(), WHAT, &path))?;
    let shown = world.root.shown(&content.relative);
    Ok(Output::Text(format!(
        "Edited {shown}: {count} replacement(s), now {} bytes",
        after.len()
    )))
}

/// Why a passage cannot be replaced.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum EditError {
    #[error("old_text was not found; it must match the file exactly, with spaces and line ends")]
    NotFound,
    #[error("old_text occurs {0} times; give more of its surroundings, or set replace_all")]
    Several(usize),
}

/// The new content and how many passages changed. `read_text_file` shows CRLF as LF; so in a file whose line ends are all
/// CRLF, LF in the arguments means CRLF.
fn replaced(before: &str, old: &str, new: &str, all: bool) -> Result<(String, usize), EditError> {
    let windows =
        before.contains("\r\n") && before.matches('\n').count() == before.matches("\r\n").count();
    let in_file = |text: &str| {
        if windows {
            text.replace("\r\n", "\n").replace('\n', "\r\n")
        } else {
            text.to_owned()
        }
    };
    let (old, new) = (in_file(old), in_file(new));
    match before.matches(&old).count() {
        0 => Err(EditError::NotFound),
        several if several > 1 && !all => Err(EditError::Several(several)),
        count => Ok((before.replace(&old, &new), count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_exactly_one_passage_unless_told_otherwise() {
        assert_eq!(
            replaced("a b c", "b", "x", false),
            Ok(("a x c".to_owned(), 1))
        );
        assert_eq!(replaced("b b", "b", "x", false), Err(EditError::Several(2)));
        assert_eq!(replaced("b b", "b", "x", true), Ok(("x x".to_owned(), 2)));
        assert_eq!(replaced("a", "b", "x", true), Err(EditError::NotFound));
    }

    #[test]
    fn windows_line_ends_are_kept() {
        assert_eq!(
            replaced("a\r\nb\r\n", "a\nb", "1\n2", false),
            Ok(("1\r\n2\r\n".to_owned(), 1))
        );
        assert_eq!(
            replaced("a\r\nb\n", "a\nb", "x", false),
            Err(EditError::NotFound),
            "mixed: exact only"
        );
    }
}
