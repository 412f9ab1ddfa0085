//! Which files of a world count, and what they are called (`spec/grading.md` §4.1).

use snapshot::{APPS_DATA, FILESYSTEM};

/// The path as people know it, where the entry `path` of a world counts; `None` where it is
/// bookkeeping, hidden or compiled.
#[must_use]
pub fn display_path(path: &str) -> Option<String> {
    let (subsystem, rest) = path.split_once('/')?;
    let components: Vec<&str> = rest.split('/').filter(|c| !c.is_empty()).collect();
    let name = *components.last()?;
    let hidden = match subsystem {
        FILESYSTEM => components
            .iter()
            .any(|component| component.starts_with('.')),
        // State of the harness, not of an application.
        APPS_DATA => name.starts_with('.') || components.first() == Some(&".coordinator"),
        _ => true,
    };
    let bookkeeping = name == ".keep"
        || components
            .iter()
            .any(|component| matches!(*component, "__MACOSX" | "__pycache__"));
    if hidden || bookkeeping || name.ends_with(".pyc") || name.ends_with(".pyo") {
        return None;
    }
    let relative = components.join("/").replace('\\', "/");
    Some(if subsystem == APPS_DATA {
        format!("{APPS_DATA}/{relative}")
    } else {
        relative
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_and_how_it_is_called() {
        for (path, expected) in [
            ("filesystem/a/b.txt", Some("a/b.txt")),
            (
                ".apps_data/mail/.x/box.db",
                Some(".apps_data/mail/.x/box.db"),
            ),
            (".apps_data/mail/.hidden", None),
            (".apps_data/.coordinator/state.json", None),
            ("filesystem/.git/config", None),
            ("filesystem/a/.keep", None),
            ("filesystem/__MACOSX/a", None),
            ("filesystem/x/__pycache__/m.txt", None),
            ("filesystem/m.pyc", None),
            ("other/a.txt", None),
            ("filesystem", None),
        ] {
            assert_eq!(display_path(path).as_deref(), expected, "{path}");
        }
    }
}
