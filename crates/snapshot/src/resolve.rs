//! Where a symbolic link leads, step by step, without ever leaving the root it belongs to.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows in one lookup.
const MAX_LINKS: usize = 40;

/// The outcome of following a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// A path below the root. It need not exist.
    Inside(PathBuf),
    /// Some step is above the root, or absolute.
    Outside,
    /// More links than any system would follow.
    Loop,
}

/// Follows `target` from the directory `base` (a path without links, relative to the root).
///
/// `link_at` answers what the link at a path points to, or `None` where there is none. A component
/// that does not exist is taken as it is written, so that a link that dangles today cannot lead
/// outside tomorrow.
pub(crate) fn resolve(
    base: &Path,
    target: &Path,
    mut link_at: impl FnMut(&Path) -> io::Result<Option<PathBuf>>,
) -> io::Result<Resolved> {
    enum Step {
        Up,
        Down(OsString),
    }
    fn steps(target: &Path) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        for component in target.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => steps.push(Step::Up),
                Component::Normal(name) => steps.push(Step::Down(name.to_owned())),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(steps)
    }

    let mut here = base.to_owned();
    let Some(first) = steps(target) else {
        return Ok(Resolved::Outside);
    };
    let mut pending = VecDeque::from(first);
    let mut links = 0;
    while let Some(step) = pending.pop_front() {
        match step {
            Step::Up => {
                if !here.pop() {
                    return Ok(Resolved::Outside);
                }
            }
            Step::Down(name) => {
                here.push(name);
                let Some(target) = link_at(&here)? else {
                    continue;
                };
                links += 1;
                if links > MAX_LINKS {
                    return Ok(Resolved::Loop);
                }
                let Some(next) = steps(&target) else {
                    return Ok(Resolved::Outside);
                };
                here.pop();
                for step in next.into_iter().rev() {
                    pending.push_front(step);
                }
            }
        }
    }
    Ok(Resolved::Inside(here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn follow(links: &[(&str, &str)], base: &str, target: &str) -> Resolved {
        let links: HashMap<PathBuf, PathBuf> = links
            .iter()
            .map(|(from, to)| (from.into(), to.into()))
            .collect();
        resolve(Path::new(base), Path::new(target), |path| {
            Ok(links.get(path).cloned())
        })
        .unwrap()
    }

    fn inside(path: &str) -> Resolved {
        Resolved::Inside(path.into())
    }

    #[test]
    fn plain_targets() {
        assert_eq!(follow(&[], "a/b", "../c.txt"), inside("a/c.txt"));
        assert_eq!(follow(&[], "a", "../../x"), Resolved::Outside);
        assert_eq!(follow(&[], "", "/etc/passwd"), Resolved::Outside);
        assert_eq!(follow(&[], "a", ".."), inside(""));
    }

    #[test]
    fn parents_are_those_of_the_directory_a_link_leads_to() {
        let links = [("p/q/s", "../..")];
        assert_eq!(follow(&links, "", "p/q/s"), inside(""));
        assert_eq!(follow(&links, "", "p/q/s/.."), Resolved::Outside);
        // Dangling, but one directory away from leading outside.
        assert_eq!(follow(&links, "", "p/q/s/none/../../x"), Resolved::Outside);
    }

    #[test]
    fn loops_end() {
        assert_eq!(follow(&[("a", "b"), ("b", "a")], "", "a"), Resolved::Loop);
    }
}
