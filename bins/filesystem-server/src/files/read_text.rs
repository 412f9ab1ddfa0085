//! `read_text_file` (§2.4).

use std::path::Path;

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{encoding, open, require_file_path};
use crate::tools::{Call, Output, ToolError, parse};

const WHAT: &str = "read text file";

/// Extensions that are text, sorted, with blanks between.
const EXTENSIONS: &str = "bash bat bib c cfg cmd conf cpp css csv dockerfile dockerignore editorconfig \
     env fish gitignore go gql graphql h hpp htm html ini java js json jsx less log makefile md php \
     properties ps1 py rb rs rst scss sh sql tex toml ts tsx txt vagrantfile xml yaml yml zsh";

/// Names that are text without an extension.
const NAMES: [&str; 3] = ["makefile", "dockerfile", "vagrantfile"];

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    encoding: String,
    // `max_size` is accepted and has no meaning (§2.4).
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments {
        file_path: path,
        encoding,
    } = parse(arguments)?;
    require_file_path(&path)?;
    let extension = extension(&path);
    if !EXTENSIONS.split(' ').any(|known| known == extension) {
        let known = EXTENSIONS.replace(' ', ", ");
        return Err(ToolError::failed(format!(
            "Unsupported file type: '{extension}'. Supported extensions: {known}"
        )));
    }
    let content = call
        .root
        .open()
        .map_err(open::ReadError::from)
        .and_then(|world| open::read(&world, &path, call.limits.max_text_bytes, "max_text_bytes"))
        .map_err(|error| error.into_tool_error(WHAT, &path))?;
    let text = match encoding::decode(&content.bytes, &encoding) {
        Ok(text) => text,
        Err(error @ encoding::DecodeError::Unknown(_)) => {
            return Err(ToolError::failed(format!("Failed to {WHAT}: {error}")));
        }
        Err(error) => {
            return Err(ToolError::failed(format!(
                "Failed to decode file with encoding '{encoding}': {error}"
            )));
        }
    };
    Ok(Output::Text(with_line_feeds(text)))
}

/// What decides whether a file is text: the part after the last dot, or a name that stands for itself.
fn extension(path: &str) -> String {
    let name = Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    match name.rsplit_once('.') {
        Some((_, extension)) => extension.to_owned(),
        None if NAMES.contains(&name.as_str()) => name,
        None => String::new(),
    }
}

/// CRLF and CR become LF, as models expect.
fn with_line_feeds(text: String) -> String {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_as_the_contract_says() {
        for (path, wanted) in [
            ("/a/b.TXT", "txt"),
            ("/a.d/b", ""),
            ("/.gitignore", "gitignore"),
            ("/Makefile", "makefile"),
            ("/x/DOCKERFILE", "dockerfile"),
            ("/archive.tar.gz", "gz"),
            ("/", ""),
        ] {
            assert_eq!(extension(path), wanted, "{path}");
        }
    }

    #[test]
    fn the_list_of_extensions_is_sorted() {
        assert!(EXTENSIONS.split(' ').is_sorted());
        assert_eq!(EXTENSIONS.split(' ').count(), 52);
    }
}
