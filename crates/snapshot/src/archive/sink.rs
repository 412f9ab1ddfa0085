//! Where packed members go: one of the archive formats, or something of the caller's own.

use std::io::{self, Read, Write};

use flate2::Compression;
use tar::Builder;
use zip::ZipWriter;
use zip::write::StreamWriter;

use super::format::ArchiveFormat;
use super::gzip::GzipWriter;
use super::members::{self, ExactLength, Member, MemberKind};
use super::pack::PackOptions;
use super::zip_member::{self, ZipMember};

/// Takes the members of a world, one after the other.
pub trait Sink {
    /// Takes a member. Exactly the announced size counts: what `content` has beyond it is left, what
    /// it lacks is filled with zeros. Answers how many bytes were missing.
    ///
    /// # Errors
    /// When the member cannot be taken; packing ends then.
    fn append(&mut self, member: &Member<'_>, content: &mut dyn Read) -> io::Result<u64>;
}

/// An archive being written.
pub(super) enum ArchiveSink<W: Write> {
    TarGz(Box<Builder<GzipWriter<W>>>),
    TarZst(Builder<zstd::Encoder<'static, W>>),
    Zip(Box<ZipWriter<StreamWriter<W>>>, u32),
}

impl<W: Write> ArchiveSink<W> {
    pub(super) fn new(out: W, options: &PackOptions) -> io::Result<Self> {
        let level = options.compression;
        Ok(match options.format {
            ArchiveFormat::TarGz => {
                let level = Compression::new(level.unwrap_or(1).min(9));
                Self::TarGz(Box::new(Builder::new(GzipWriter::new(
                    out,
                    level,
                    options.threads,
                ))))
            }
            ArchiveFormat::TarZst => {
                let level = i32::try_from(level.unwrap_or(3).min(19)).unwrap_or(3);
                let mut encoder = zstd::Encoder::new(out, level)?;
                encoder.include_checksum(true)?;
                Self::TarZst(Builder::new(encoder))
            }
            ArchiveFormat::Zip => Self::Zip(
                Box::new(ZipWriter::new_stream(out)),
                level.unwrap_or(1).min(9),
            ),
        })
    }

    /// Writes the end of the archive.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::TarGz(archive) => archive.into_inner()?.finish()?.flush(),
            Self::TarZst(archive) => archive.into_inner()?.finish()?.flush(),
            Self::Zip(archive, _) => archive.finish()?.into_inner().flush(),
        }
    }
}

impl<W: Write> Sink for ArchiveSink<W> {
    fn append(&mut self, member: &Member<'_>, content: &mut dyn Read) -> io::Result<u64> {
        match self {
            Self::TarGz(archive) => members::append(archive, member, content),
            Self::TarZst(archive) => members::append(archive, member, content),
            Self::Zip(archive, level) => append_zip(archive, *level, member, content),
        }
    }
}

fn append_zip<W: Write>(
    archive: &mut ZipWriter<StreamWriter<W>>,
    level: u32,
    member: &Member<'_>,
    content: &mut dyn Read,
) -> io::Result<u64> {
    let mut zipped = ZipMember {
        name: member.name,
        size: 0,
        mode: member.mode,
        modified: Some(member.modified),
        level: Some(level),
    };
    match member.kind {
        MemberKind::Directory => {
            // The writer takes names of directories as text only.
            let name = std::str::from_utf8(member.name).map_err(|_| {
                io::Error::other("a zip cannot hold an empty directory whose name is not UTF-8")
            })?;
            archive.add_directory(name, zipped.options())?;
            Ok(0)
        }
        MemberKind::File(size) => {
            zipped.size = size;
            zip_member::start_file(archive, &zipped)?;
            let mut exact = ExactLength::new(content, size);
            io::copy(&mut exact, archive)?;
            Ok(exact.missing())
        }
    }
}
