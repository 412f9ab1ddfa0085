//! The root directory and the paths below it.
//!
//! Two things work together here. *Meaning*: [`World::locate`] follows a virtual path, link by link, to a path without
//! links, and says whether that is inside. *Confinement*: every access goes through a [`cap_std::fs::Dir`], which cannot
//! leave the root whatever a path contains. So a link that is swapped in between the two steps can change which file
//! inside is reached, but never lead outside.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata},
};

/// The root's name in task files and in worlds, whatever directory plays its part. Paths and links that start with it
/// mean the root in every sandbox, so that a world behaves the same with and without a container.
const CONVENTIONAL_ROOT: &str = "/filesystem";

/// Longest chain of links, as in Linux.
const MAX_LINKS: usize = 40;

/// A root directory that may be opened.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// Canonical physical path.
    path: PathBuf,
    /// Prefixes that mean the root: the canonical path, the path as it was given, the conventional one.
    names: Vec<PathBuf>,
    /// Show physical paths in the server's own messages.
    expose_physical_paths: bool,
}

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// It leads out of the root.
    #[error("access denied")]
    Outside,
    /// There is nothing.
    #[error("not found")]
    Missing,
    /// The operating system refuses.
    #[error("permission denied")]
    Denied,
    /// It is a file where a directory is needed.
    #[error("not a directory")]
    NotADirectory,
    /// Anything else.
    #[error("error: {0}")]
    Other(io::Error),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            // cap-std reports an attempt to leave the root as a permission error of its own, without a number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::Outside,
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Other(error),
        }
    }
}

impl PathError {
    /// The error as a successful result tells it, for example `[not found: /a]` (§2.2).
    pub(crate) fn bracketed(&self, argument: &str) -> String {
        match self {
            Self::Other(_) => format!("[{self}]"),
            _ => format!("[{self}: {argument}]"),
        }
    }
}

impl Root {
    pub(crate) fn new(given: &Path, expose_physical_paths: bool) -> io::Result<Self> {
        let path = given.canonicalize()?;
        Dir::open_ambient_dir(&path, ambient_authority())?;
        let mut names = vec![
            path.clone(),
            given.to_path_buf(),
            PathBuf::from(CONVENTIONAL_ROOT),
        ];
        // `/` as a root would swallow every path, and needs no prefix.
        names.retain(|name| name.is_absolute() && name.parent().is_some());
        Ok(Self {
            path,
            names,
            expose_physical_paths,
        })
    }

    /// Opens the root for one call. Not kept open between calls: a world may be replaced as a whole by renaming.
    pub(crate) fn open(&self) -> Result<World<'_>, PathError> {
        let dir = Dir::open_ambient_dir(&self.path, ambient_authority())?;
        Ok(World { root: self, dir })
    }

    /// The physical path, for the log.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path below the root as the agent is to see it. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn shown(&self, relative: &Path) -> String {
        if self.expose_physical_paths && relative.as_os_str().is_empty() {
            self.path.to_string_lossy().into_owned()
        } else if self.expose_physical_paths {
            self.path.join(relative).to_string_lossy().into_owned()
        } else {
            format!("/{}", relative.to_string_lossy())
        }
    }

    /// A link's text as the agent is to see it: absolute targets inside in virtual form.
    pub(crate) fn shown_link(&self, target: &Path) -> String {
        match self.without_name(target) {
            Some(rest) if !self.expose_physical_paths => self.shown(rest),
            _ => target.to_string_lossy().into_owned(),
        }
    }

    /// What follows the root's name, if the path starts with one.
    fn without_name<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        self.names
            .iter()
            .find_map(|name| path.strip_prefix(name).ok())
    }

    /// The components below the root that an argument means, without looking at the disk (§2.2): the root's physical
    /// name or leading slashes are dropped and `..` is worked out by the text alone.
    fn components(&self, argument: &str) -> Result<Vec<OsString>, PathError> {
        let below = self
            .without_name(Path::new(argument))
            .unwrap_or_else(|| Path::new(argument));
        let mut components = Vec::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => components.push(name.to_owned()),
                Component::ParentDir => {
                    components.pop().ok_or(PathError::Outside)?;
                }
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(components)
    }
}

/// The root, opened.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) root: &'a Root,
    pub(crate) dir: Dir,
}

/// Where a path leads: no links in it.
#[derive(Debug)]
pub(crate) struct Place {
    /// Path below the root; empty for the root itself.
    pub(crate) relative: PathBuf,
    /// What is there; nothing if the last step is missing.
    pub(crate) metadata: Option<Metadata>,
}

/// Where a path leads when its last component is not followed: the thing to move, delete or describe.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Path of the parent directory below the root, without links.
    pub(crate) parent: PathBuf,
    /// The entry's name in it.
    pub(crate) name: OsString,
    /// The entry itself, which may be a link; nothing if there is none.
    pub(crate) metadata: Option<Metadata>,
}

impl Seat {
    pub(crate) fn relative(&self) -> PathBuf {
        self.parent.join(&self.name)
    }
}

/// A path that `cap-std` accepts: the root itself is `.`.
pub(crate) fn openable(relative: &Path) -> &Path {
    if relative.as_os_str().is_empty() {
        Path::new(".")
    } else {
        relative
    }
}

impl World<'_> {
    /// Follows an argument to the end.
    pub(crate) fn locate(&self, argument: &str) -> Result<Place, PathError> {
        let components = self.root.components(argument)?;
        self.follow(PathBuf::new(), components.into())
    }

    /// Like [`Self::locate`], where the thing has to be there.
    pub(crate) fn existing(&self, argument: &str) -> Result<(PathBuf, Metadata), PathError> {
        let place = self.locate(argument)?;
        Ok((place.relative, place.metadata.ok_or(PathError::Missing)?))
    }

    /// Like [`Self::existing`], where the thing has to be a directory.
    pub(crate) fn directory(&self, argument: &str) -> Result<PathBuf, PathError> {
        let (relative, metadata) = self.existing(argument)?;
        if metadata.is_dir() {
            Ok(relative)
        } else {
            Err(PathError::NotADirectory)
        }
    }

    /// Follows an argument to its last component, which is not followed. `None`: the argument means the root.
    pub(crate) fn seat(&self, argument: &str) -> Result<Option<Seat>, PathError> {
        let mut components = self.root.components(argument)?;
        let Some(name) = components.pop() else {
            return Ok(None);
        };
        let parent = self.follow(PathBuf::new(), components.into())?;
        if !parent.metadata.is_some_and(|found| found.is_dir()) {
            return Err(PathError::Missing);
        }
        let (name, metadata) = self.entry(&parent.relative, name)?;
        Ok(Some(Seat {
            parent: parent.relative,
            name,
            metadata,
        }))
    }

    /// Where an entry found in a listing leads: `directory` has no links in it, `name` may be one.
    pub(crate) fn locate_entry(&self, directory: &Path, name: &OsStr) -> Result<Place, PathError> {
        self.follow(directory.to_path_buf(), VecDeque::from([name.to_owned()]))
    }

    /// Walks `pending` from `reached`, which has no links in it.
    fn follow(
        &self,
        mut reached: PathBuf,
        mut pending: VecDeque<OsString>,
    ) -> Result<Place, PathError> {
        let mut metadata = if pending.is_empty() {
            Some(self.dir.symlink_metadata(openable(&reached))?)
        } else {
            None
        };
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                if !reached.pop() {
                    return Err(PathError::Outside);
                }
                metadata = Some(self.dir.symlink_metadata(openable(&reached))?);
                continue;
            }
            let (name, found) = self.entry(&reached, name)?;
            let candidate = reached.join(name);
            let Some(found) = found else {
                reached = candidate;
                reached.extend(pending);
                return Ok(Place {
                    relative: reached,
                    metadata: None,
                });
            };
            if found.is_symlink() {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::Other(io::Error::other(format!(
                        "more than {MAX_LINKS} links in a row"
                    ))));
                }
                let target = self.dir.read_link_contents(&candidate)?;
                let below = if target.is_absolute() {
                    reached = PathBuf::new();
                    self.root.without_name(&target).ok_or(PathError::Outside)?
                } else {
                    &target
                };
                for step in below.components().rev() {
                    if matches!(step, Component::Normal(_) | Component::ParentDir) {
                        pending.push_front(step.as_os_str().to_owned());
                    }
                }
                if pending.is_empty() {
                    metadata = Some(self.dir.symlink_metadata(openable(&reached))?);
                }
            } else {
                reached = candidate;
                metadata = Some(found);
            }
        }
        Ok(Place {
            relative: reached,
            metadata,
        })
    }

    /// One entry of a directory, under its true name. A name that was shown with U+FFFD for bytes that are not UTF-8
    /// finds its entry, if it fits only one.
    fn entry(
        &self,
        directory: &Path,
        name: OsString,
    ) -> Result<(OsString, Option<Metadata>), PathError> {
        match self
            .dir
            .symlink_metadata(directory.join(&name))
            .map_err(PathError::from)
        {
            Ok(metadata) => Ok((name, Some(metadata))),
            Err(PathError::Missing | PathError::NotADirectory) => {
                match self.named_lossily(directory, &name) {
                    Some(true_name) => {
                        let metadata = self.dir.symlink_metadata(directory.join(&true_name))?;
                        Ok((true_name, Some(metadata)))
                    }
                    None => Ok((name, None)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn named_lossily(&self, directory: &Path, name: &OsStr) -> Option<OsString> {
        let shown = name
            .to_str()
            .filter(|text| text.contains(char::REPLACEMENT_CHARACTER))?;
        let mut fitting = (self.dir.read_dir(openable(directory)).ok()?)
            .filter_map(|entry| Some(entry.ok()?.file_name()))
            .filter(|candidate| candidate.to_string_lossy() == shown);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::TestRunner};

    use super::*;

    /// A tree with links of every kind, all of which the operating system can follow too.
    fn tree() -> (tempfile::TempDir, Root) {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("root");
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/file"), "").unwrap();
        std::fs::write(folder.path().join("secret"), "").unwrap();
        symlink("a/b", path.join("link")).unwrap();
        symlink("..", path.join("a/up")).unwrap();
        symlink("../up/link", path.join("a/b/round")).unwrap();
        symlink(path.join("a"), path.join("absolute")).unwrap();
        symlink("..", path.join("out")).unwrap();
        symlink("missing/x", path.join("dangling")).unwrap();
        let root = Root::new(&path, false).unwrap();
        (folder, root)
    }

    /// The operating system's own way of following links is the judge.
    #[test]
    fn a_path_leads_where_the_system_says_or_nowhere() {
        let (_folder, root) = tree();
        let world = root.open().unwrap();
        let name = prop::sample::select(vec![
            "a", "b", "file", "link", "up", "round", "absolute", "out", "dangling", "missing",
            "secret", "..", ".",
        ]);
        let config = ProptestConfig {
            cases: 2000,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        TestRunner::new(config)
            .run(&prop::collection::vec(name, 0..8), |names| {
                compare(&world, &names);
                Ok(())
            })
            .unwrap();
    }

    fn compare(world: &World<'_>, names: &[&str]) {
        let argument = format!("/{}", names.join("/"));
        let found = world.locate(&argument);
        let mut lexical = Vec::new();
        for name in names {
            match *name {
                ".." if lexical.pop().is_none() => {
                    assert!(matches!(found, Err(PathError::Outside)), "{argument}");
                    return;
                }
                ".." | "." => {}
                name => lexical.push(name),
            }
        }
        let root = &world.root.path;
        match root.join(lexical.join("/")).canonicalize() {
            Ok(truth) => match truth.strip_prefix(root) {
                Ok(inside) => {
                    let place = found.unwrap();
                    assert_eq!(place.relative, inside, "{argument}");
                    assert!(place.metadata.is_some(), "{argument}");
                }
                Err(_) => assert!(matches!(found, Err(PathError::Outside)), "{argument}"),
            },
            Err(_) => assert!(
                found.is_err() || found.unwrap().metadata.is_none(),
                "{argument}"
            ),
        }
    }

    #[test]
    fn every_name_of_the_root_means_the_root() {
        let (_folder, root) = tree();
        let physical = root.path.to_string_lossy().into_owned();
        for argument in [
            "",
            "/",
            "//",
            ".",
            "/filesystem",
            "/filesystem/",
            &physical,
            "/a/..",
        ] {
            assert_eq!(
                root.components(argument).unwrap(),
                Vec::<OsString>::new(),
                "{argument}"
            );
        }
        assert_eq!(
            root.components("/filesystem/filesystem/x").unwrap(),
            ["filesystem", "x"]
        );
        assert_eq!(
            root.components("/filesystems/x").unwrap(),
            ["filesystems", "x"]
        );
        assert_eq!(root.shown_link(&root.path.join("a/file")), "/a/file");
        assert_eq!(root.shown_link(Path::new("/elsewhere")), "/elsewhere");
    }
}
