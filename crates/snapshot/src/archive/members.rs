//! Members of a tar archive that we write.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::time::SystemTime;

use tar::{Builder, EntryType, Header};

/// What the header of a member says.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Its path in the archive, as bytes; that of a directory ends with a slash.
    pub name: &'a [u8],
    /// What it is.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: u32,
    /// Whose it is.
    pub owner: Owner<'a>,
    /// When its content was changed last.
    pub modified: SystemTime,
}

/// What a [`Member`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// A regular file of this size.
    File(u64),
    /// A directory.
    Directory,
}

/// The user and the group a member belongs to.
#[derive(Debug, Clone, Default)]
pub struct Owner<'a> {
    /// The number of the user.
    pub uid: u64,
    /// The number of the group.
    pub gid: u64,
    /// The name of the user, where it has one.
    pub user: Option<&'a str>,
    /// The name of the group, where it has one.
    pub group: Option<&'a str>,
}

/// Bytes of a large file that are read at once.
const READ_AHEAD: usize = 256 * 1024;

/// Writes a member. Exactly the announced size is taken from `content`: more is cut off, what is
/// missing is filled with zeros. Answers how many bytes were missing.
pub(crate) fn append<W: Write>(
    archive: &mut Builder<W>,
    member: &Member<'_>,
    content: impl Read,
) -> io::Result<u64> {
    let (seconds, fraction) = timestamp(member.modified);
    if let Some(text) = &fraction {
        archive.append_pax_extensions([("mtime", text.as_bytes())])?;
    }
    let mut header = Header::new_gnu();
    header.set_mode(member.mode & 0o7777);
    header.set_uid(member.owner.uid);
    header.set_gid(member.owner.gid);
    header.set_mtime(seconds);
    // Names too long for the header are left out; the numbers are what counts.
    if let Some(user) = member.owner.user.filter(|name| name.len() < 32) {
        header.set_username(user)?;
    }
    if let Some(group) = member.owner.group.filter(|name| name.len() < 32) {
        header.set_groupname(group)?;
    }
    let size = match member.kind {
        MemberKind::File(size) => {
            header.set_entry_type(EntryType::Regular);
            size
        }
        MemberKind::Directory => {
            header.set_entry_type(EntryType::Directory);
            0
        }
    };
    header.set_size(size);
    // The archive asks for little at a time.
    let room = usize::try_from(size).unwrap_or(READ_AHEAD).min(READ_AHEAD);
    let content = BufReader::with_capacity(room, content);
    let mut exact = ExactLength::new(content, size);
    archive.append_data(&mut header, path(member.name), &mut exact)?;
    Ok(exact.missing)
}

fn path(name: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt as _;
    std::path::Path::new(std::ffi::OsStr::from_bytes(name))
}

/// Whole seconds for a header; nothing before 1970.
pub(super) fn seconds_of(time: SystemTime) -> u64 {
    timestamp(time).0
}

/// Seconds for the header, and the exact text for a pax record where seconds do not say all.
pub(super) fn timestamp(time: SystemTime) -> (u64, Option<String>) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => {
            let text = (after.subsec_nanos() != 0)
                .then(|| format!("{}.{:09}", after.as_secs(), after.subsec_nanos()));
            (after.as_secs(), text)
        }
        Err(before) => {
            let before = before.duration();
            let text = format!("-{}.{:09}", before.as_secs(), before.subsec_nanos());
            (0, Some(text))
        }
    }
}

/// A stream of exactly the announced length, whatever its source does meanwhile.
pub(super) struct ExactLength<R> {
    input: R,
    remaining: u64,
    missing: u64,
}

impl<R: Read> ExactLength<R> {
    pub(super) const fn new(input: R, length: u64) -> Self {
        Self {
            input,
            remaining: length,
            missing: 0,
        }
    }

    /// How many bytes the source lacked, once all was read.
    pub(super) const fn missing(&self) -> u64 {
        self.missing
    }
}

impl<R: Read> Read for ExactLength<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer
            .len()
            .min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..wanted];
        let mut count = 0;
        if self.missing == 0 {
            count = self.input.read(buffer)?;
        }
        if count == 0 {
            buffer.fill(0);
            count = wanted;
            self.missing += wanted as u64;
        }
        self.remaining -= count as u64;
        Ok(count)
    }
}

/// The names of users or groups, as `/etc/passwd` or `/etc/group` has them.
#[derive(Debug, Default)]
pub(crate) struct AccountNames(HashMap<u64, String>);

impl AccountNames {
    /// Reads a file of lines `name:…:number:…`. One that cannot be read has no names.
    pub(crate) fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut names = HashMap::new();
        for line in text.lines() {
            let mut fields = line.split(':');
            let (name, number) = (fields.next(), fields.nth(1));
            if let (Some(name), Some(Ok(number))) = (name, number.map(str::parse)) {
                names.entry(number).or_insert_with(|| name.to_owned());
            }
        }
        Self(names)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&str> {
        self.0.get(&number).map(String::as_str)
    }
}
