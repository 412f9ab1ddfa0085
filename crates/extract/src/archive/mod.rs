//! Archives: what is in them, by name and size. Archives inside of archives are listed too.

mod guard;
mod members;

use std::io::Cursor;

use crate::document::{Document, Format, extension};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

pub(crate) use self::members::{MemberKind, Next, members};

/// Extensions of archives. What a file is, its content tells.
const EXTENSIONS: &[&str] = &["gz", "tar", "tgz", "tzst", "zip", "zst"];

/// Whether a file of this name may be an archive.
pub(crate) fn is_archive(name: &str) -> bool {
    EXTENSIONS.contains(&extension(name).as_str())
}

pub(crate) fn extract(name: &str, bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let mut sink = TextSink::new(limits);
    let notes = members(name, &mut Cursor::new(bytes), limits, &mut |member| {
        let shown: String = member.name.chars().filter(|c| !c.is_control()).collect();
        let more = match member.kind {
            MemberKind::File => "",
            MemberKind::Encrypted => "\tencrypted",
            MemberKind::Link => "\tlink",
        };
        sink.line(&format!("{shown}\t{} bytes{more}", member.size));
        if sink.is_full() { Next::Stop } else { Next::Go }
    })?;
    let mut document = sink.into_document(Format::Archive);
    document.notes.extend(notes);
    Ok(document)
}
