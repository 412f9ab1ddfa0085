//! `/filesystem` and `/.apps_data` in a configuration, where an environment has them elsewhere.

use std::path::Path;

use formats::apps::AppsConfig;

use crate::sandbox::{APPS_DATA, FILESYSTEM};

/// Replaces both prefixes in `cwd`, `args` and `env` of every server; one sentence per change.
pub(crate) fn rewrite(config: &mut AppsConfig, filesystem: &Path, apps_data: &Path) -> Vec<String> {
    let roots = [
        (FILESYSTEM, filesystem.to_string_lossy()),
        (APPS_DATA, apps_data.to_string_lossy()),
    ];
    let names: Vec<String> = config.mcp_servers.names().map(str::to_owned).collect();
    let mut remarks = Vec::new();
    for (name, server) in names.iter().zip(config.mcp_servers.values_mut()) {
        let mut change = |place: String, value: &mut String| {
            let mut new = value.clone();
            for (prefix, root) in &roots {
                new = replace_prefix(&new, prefix, root);
            }
            if new != *value {
                remarks.push(format!("server `{name}`: {place} `{value}` is now `{new}`"));
                *value = new;
            }
        };
        if let Some(cwd) = &mut server.cwd {
            change("cwd".to_owned(), cwd);
        }
        for (index, arg) in server.args.iter_mut().flatten().enumerate() {
            change(format!("argument {}", index + 1), arg);
        }
        for (key, value) in server.env.iter_mut().flatten() {
            change(format!("variable {key}"), value);
        }
    }
    remarks
}

/// Replaces `prefix` by `root` wherever it stands as whole leading components of a path.
fn replace_prefix(value: &str, prefix: &str, root: &str) -> String {
    let mut new = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find(prefix) {
        let (before, from) = rest.split_at(at);
        let after = &from[prefix.len()..];
        new.push_str(before);
        // `new` holds everything before this place; a replaced root never ends in a separator.
        let starts = new.chars().next_back().is_none_or(separates) || new.ends_with("file://");
        let ends = after
            .chars()
            .next()
            .is_none_or(|c| c == '/' || separates(c));
        new.push_str(if starts && ends { root } else { prefix });
        rest = after;
    }
    new.push_str(rest);
    new
}

/// Whether `c` can stand between two paths, or between a flag and a path.
const fn separates(c: char) -> bool {
    matches!(
        c,
        '=' | ':'
            | ','
            | ';'
            | '"'
            | '\''
            | '`'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | '|'
            | '&'
    ) || c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_prefixes_of_paths_are_replaced() {
        for (value, expected) in [
            ("/filesystem", "/t/fs"),
            ("/filesystem/", "/t/fs/"),
            ("/filesystem/a b/c", "/t/fs/a b/c"),
            ("KEY=/filesystem/x", "KEY=/t/fs/x"),
            ("--root=/filesystem", "--root=/t/fs"),
            ("/usr/bin:/filesystem/bin:/bin", "/usr/bin:/t/fs/bin:/bin"),
            ("/filesystem:/filesystem/b", "/t/fs:/t/fs/b"),
            (
                "ls /filesystem; cat '/filesystem/x'",
                "ls /t/fs; cat '/t/fs/x'",
            ),
            ("file:///filesystem/x", "file:///t/fs/x"),
            ("/filesystems", "/filesystems"),
            ("/filesystem.bak", "/filesystem.bak"),
            ("/filesystem-2/x", "/filesystem-2/x"),
            ("/srv/filesystem", "/srv/filesystem"),
            ("/filesystem/filesystem", "/t/fs/filesystem"),
            ("https://host/filesystem", "https://host/filesystem"),
            ("filesystem", "filesystem"),
            ("", ""),
        ] {
            assert_eq!(
                replace_prefix(value, "/filesystem", "/t/fs"),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn every_place_is_rewritten_and_said() {
        let mut config: AppsConfig = serde_json::from_str(
            r#"{"mcpServers": {
                "fs": {"transport": "stdio", "command": "/filesystem/run", "cwd": "/filesystem",
                       "args": ["--data", "/.apps_data/mail"],
                       "env": {"APP_FS_ROOT": "/filesystem", "OTHER": "/home"}},
                "plain": {"transport": "http", "url": "http://x/filesystem"}}}"#,
        )
        .unwrap();
        let remarks = rewrite(&mut config, Path::new("/t/fs"), Path::new("/t/apps"));
        let server = config.mcp_servers.get("fs").unwrap();
        assert_eq!(server.cwd.as_deref(), Some("/t/fs"));
        assert_eq!(server.args.as_deref().unwrap()[1], "/t/apps/mail");
        assert_eq!(server.env.as_ref().unwrap()["APP_FS_ROOT"], "/t/fs");
        assert_eq!(server.env.as_ref().unwrap()["OTHER"], "/home");
        assert_eq!(
            remarks,
            [
                "server `fs`: cwd `/filesystem` is now `/t/fs`",
                "server `fs`: argument 2 `/.apps_data/mail` is now `/t/apps/mail`",
                "server `fs`: variable APP_FS_ROOT `/filesystem` is now `/t/fs`",
            ]
        );
    }
}
