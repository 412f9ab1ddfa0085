//! What extraction gives, and how the format is told.

use crate::error::ExtractError;
use crate::external::{self, DrawError};
use crate::limits::Limits;
use crate::office::workbook::{is_called_workbook_only, is_workbook};
use crate::sink::TextSink;
use crate::{archive, csv, json, mail, notebook, office, pdf, picture, text, xml};

/// The text of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// How it was read.
    pub format: Format,
    /// All text. For a document with parts, the parts one after the other under their headings.
    pub text: String,
    /// The sheets or slides, in order.
    pub parts: Vec<Part>,
    /// Whether text was left out because of a limit; `notes` says which.
    pub truncated: bool,
    /// What a reader should know: what was left out or could not be read.
    pub notes: Vec<String>,
    /// The comments of a word processor document, under a heading; also part of `text`.
    pub comments: Option<String>,
    /// The tracked changes of a word processor document by author, under a heading; `text` has
    /// them accepted.
    pub tracked_changes: Option<String>,
    /// How many pages a PDF has.
    pub pages: Option<usize>,
    /// The picture itself, where the document is one.
    pub picture: Option<Picture>,
    /// The first pages of a PDF as pictures, where [`Limits::page_pictures`] asks for them.
    pub page_pictures: Vec<Picture>,
}

/// A sheet or a slide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Position in the document, hidden parts counted, from 0.
    pub index: usize,
    /// What it is.
    pub kind: PartKind,
    /// The sheet's name, or the slide's title.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// The kinds of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// A sheet of a workbook.
    Sheet,
    /// A slide of a presentation.
    Slide,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The MIME type, told from the content.
    pub mime: &'static str,
    /// Width in pixels, where the header can be read.
    pub width: Option<u32>,
    /// Height in pixels, where the header can be read.
    pub height: Option<u32>,
    /// The picture as `data:` URI; absent where it is larger than the limit.
    pub data_uri: Option<String>,
}

/// How a document was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Text as it stands.
    Text,
    /// Comma-separated values: one line per row, cells separated by tabs.
    Csv,
    /// A Jupyter notebook.
    Notebook,
    /// A workbook (xlsx, xlsm, xlsb, xls, ods).
    Xlsx,
    /// A word processor document.
    Docx,
    /// A presentation.
    Pptx,
    /// A PDF.
    Pdf,
    /// A mail message.
    Mail,
    /// An archive: a list of what is in it.
    Archive,
    /// A picture.
    Picture,
    /// Nothing that gives text.
    #[default]
    Binary,
}

/// Extensions (lower case) of files that are text whatever their bytes look like.
const TEXT_EXTENSIONS: &[&str] = &[
    "asd",
    "asm",
    "astro",
    "bash",
    "bat",
    "c",
    "cfg",
    "cl",
    "clj",
    "cljs",
    "cmake",
    "cmd",
    "conf",
    "config",
    "cpp",
    "cr",
    "cs",
    "css",
    "dart",
    "dockerfile",
    "editorconfig",
    "elm",
    "erl",
    "ex",
    "exs",
    "fish",
    "fs",
    "fsx",
    "gitattributes",
    "gitignore",
    "go",
    "gql",
    "gradle",
    "graphql",
    "h",
    "hpp",
    "hrl",
    "hs",
    "htm",
    "html",
    "ics",
    "ini",
    "java",
    "jl",
    "js",
    "jsonl",
    "jsx",
    "kt",
    "less",
    "lisp",
    "lock",
    "log",
    "lua",
    "m",
    "makefile",
    "md",
    "ml",
    "mli",
    "mm",
    "nim",
    "ocaml",
    "odin",
    "perl",
    "php",
    "pl",
    "proto",
    "ps1",
    "py",
    "r",
    "rb",
    "rkt",
    "rs",
    "scala",
    "scm",
    "scss",
    "sh",
    "sql",
    "ss",
    "svelte",
    "svg",
    "swift",
    "tex",
    "thrift",
    "toml",
    "ts",
    "tsx",
    "txt",
    "v",
    "vue",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// The lower-cased text after the last dot of the file name; empty where there is none.
#[must_use]
pub fn extension(name: &str) -> String {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match file.rsplit_once('.') {
        Some((_, extension)) => extension.to_lowercase(),
        None => String::new(),
    }
}

/// Whether a file of this name is converted by LibreOffice before it is read, which takes seconds.
#[must_use]
pub fn needs_conversion(name: &str) -> bool {
    external::modern(&extension(name)).is_some()
}

/// Reads the document `bytes`, whose file is called `name`.
///
/// The extension decides where it promises a structured format; otherwise the content does. A file
/// that holds no text at all gives an empty [`Document`] of format [`Format::Binary`], not an error.
///
/// # Errors
/// [`ExtractError`] when the document is broken, encrypted or crosses a limit.
pub fn extract(name: &str, bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    if bytes.len() > limits.file_bytes {
        return Err(ExtractError::Limit {
            what: "file size in bytes",
            limit: "file_bytes",
            got: bytes.len() as u64,
            allowed: limits.file_bytes as u64,
        });
    }
    let extension = extension(name);
    match extension.as_str() {
        "csv" | "tsv" => Ok(csv::extract(&extension, bytes, limits)),
        "ipynb" => notebook::extract(bytes, limits),
        called if is_called_workbook_only(called, bytes) => {
            if !text::looks_like_text(bytes) {
                return Err(ExtractError::broken("xls", "it begins like no workbook"));
            }
            Ok(plain(bytes, limits))
        }
        known if is_workbook(known) => office::xlsx::extract(&extension, bytes, limits),
        "docx" => office::docx::extract(bytes, limits),
        "pptx" => office::pptx::extract(bytes, limits),
        "eml" => mail::extract(bytes, limits),
        _ if archive::is_archive(name) => archive::extract(name, bytes, limits),
        "json" => Ok(json::extract(bytes, limits)),
        "xml" => Ok(xml::extract(bytes, limits)),
        "pdf" => pdf::extract(bytes, limits),
        picture if picture::EXTENSIONS.contains(&picture) => Ok(picture::extract(bytes, limits)),
        old if external::modern(old).is_some() && !text::looks_like_text(bytes) => {
            old_format(old, bytes, limits)
        }
        known if TEXT_EXTENSIONS.contains(&known) => Ok(plain(bytes, limits)),
        _ if text::looks_like_text(bytes) => Ok(plain(bytes, limits)),
        _ => Ok(Document::default()),
    }
}

/// A document of a format that only LibreOffice reads, as what it makes of it. Where it is not
/// installed there is no text, and a note says so.
fn old_format(extension: &str, bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let without_text = |note: String| Document {
        notes: vec![note],
        ..Document::default()
    };
    if !limits.conversions {
        return Ok(without_text(format!(
            "this .{extension} document is not read (limit `conversions`)"
        )));
    }
    let modern = external::modern(extension).unwrap_or_default();
    match external::convert(extension, bytes, modern, limits) {
        Ok(converted) => {
            let mut document = extract(&format!("converted.{modern}"), &converted, limits)?;
            document.notes.push(format!(
                "a .{extension} document, read as the .{modern} that LibreOffice makes of it"
            ));
            Ok(document)
        }
        Err(DrawError::Missing(program)) => Ok(without_text(format!(
            "text of .{extension} documents is read only where {} (`{}`) is installed",
            program.package(),
            program.name()
        ))),
        Err(failure) => Err(ExtractError::Convert {
            format: extension.to_owned(),
            reason: failure.to_string(),
        }),
    }
}

fn plain(bytes: &[u8], limits: &Limits) -> Document {
    let mut sink = TextSink::new(limits);
    sink.push(&text::decode(bytes));
    sink.into_document(Format::Text)
}
