//! Office documents as PDFs, and documents of old formats as those of today, by LibreOffice.
//!
//! It gets a profile of its own in which macros do not run and links to other files and addresses
//! are not followed.

use std::ffi::OsString;
use std::path::Path;

use super::run::{Cost, Failure, Run, made};
use super::{DrawError, ExternalProgram};
use crate::limits::Limits;

const PROGRAM: ExternalProgram = ExternalProgram::Soffice;

/// A document that every version of the program can convert.
const HARMLESS: (&str, &[u8]) = ("txt", b"x\n");

/// The settings of the profile.
const SETTINGS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel" oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>1</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"#;

/// The format of today that holds what a document of an old one does.
pub(crate) fn modern(extension: &str) -> Option<&'static str> {
    match extension {
        "doc" | "odt" => Some("docx"),
        "odp" | "ppt" => Some("pptx"),
        _ => None,
    }
}

/// The first `pages` pages of the document `bytes` of type `from`, or all, as a PDF.
pub(crate) fn to_pdf(
    from: &str,
    bytes: &[u8],
    pages: Option<usize>,
    limits: &Limits,
) -> Result<Vec<u8>, DrawError> {
    let module = match from {
        "doc" | "docx" | "odt" => "writer",
        "odp" | "ppt" | "pptx" => "impress",
        _ => "calc",
    };
    let Some(pages) = pages else {
        return convert(from, bytes, "pdf", limits);
    };
    // A workbook may have thousands of pages, which nobody looks at. Versions before 7.4 do not know
    // this and write all.
    let to = format!(
        r#"pdf:{module}_pdf_Export:{{"PageRange":{{"type":"string","value":"1-{pages}"}}}}"#
    );
    match attempt(from, bytes, &to, limits) {
        Ok(converted) => Ok(converted),
        // What is in it may belong to another module than the name says.
        Err(Failure::NoResult(_)) => convert(from, bytes, "pdf", limits),
        Err(failure) => Err(blame(failure, limits)),
    }
}

/// The document `bytes` of type `from` as one of type `to`.
pub(crate) fn convert(
    from: &str,
    bytes: &[u8],
    to: &str,
    limits: &Limits,
) -> Result<Vec<u8>, DrawError> {
    PROGRAM
        .find(&limits.program_path)
        .ok_or(DrawError::Missing(PROGRAM))?;
    attempt(from, bytes, to, limits).map_err(|failure| blame(failure, limits))
}

fn blame(failure: Failure, limits: &Limits) -> DrawError {
    let (kind, harmless) = HARMLESS;
    failure.blame(PROGRAM, || attempt(kind, harmless, "pdf", limits))
}

fn attempt(from: &str, bytes: &[u8], to: &str, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let system = |error: std::io::Error| Failure::Start(error.to_string());
    let folder = tempfile::tempdir().map_err(system)?;
    let input = lay_out(folder.path(), from, bytes).map_err(system)?;
    let output = folder.path().join("out");
    let mut profile = OsString::from("-env:UserInstallation=file://");
    profile.push(folder.path().join("profile"));
    let mut arguments = vec![profile];
    arguments.extend(
        [
            "--headless",
            "--norestore",
            "--nologo",
            "--nodefault",
            "--convert-to",
            to,
            "--outdir",
        ]
        .map(OsString::from),
    );
    arguments.push(output.clone().into());
    arguments.push(input.into());
    let run = Run {
        program: PROGRAM,
        arguments,
        folder: folder.path(),
        cost: Cost {
            time: (limits.convert_time, "convert_time"),
            bytes: (limits.convert_bytes, "convert_bytes"),
            memory: limits.convert_memory_bytes,
        },
    };
    let ended = run.to_end(limits)?;
    let to = to.split(':').next().unwrap_or(to);
    let made = made(&output.join(format!("in.{to}")), limits.convert_bytes).map_err(system)?;
    let name = PROGRAM.name();
    match made {
        Some(converted) if !converted.is_empty() => Ok(converted),
        // It says that it succeeded also where it could not load the document.
        _ => Err(Failure::NoResult(format!(
            "`{name}` made no {to} of it ({ended})"
        ))),
    }
}

/// Writes the document and the profile.
fn lay_out(folder: &Path, from: &str, bytes: &[u8]) -> std::io::Result<std::path::PathBuf> {
    let profile = folder.join("profile/user");
    std::fs::create_dir_all(&profile)?;
    std::fs::write(profile.join("registrymodifications.xcu"), SETTINGS)?;
    let input = folder.join(format!("in.{from}"));
    std::fs::write(&input, bytes)?;
    Ok(input)
}
