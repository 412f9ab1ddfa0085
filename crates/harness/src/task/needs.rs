//! What a task needs of its sandbox: checked, and with its paths found.

use std::path::{Component, Path};

use formats::task::{SandboxConfig, TaskMount, file};
use sandbox::{BindMount, Needs, Resources};

/// Variables that the sandbox sets itself.
const OWN_VARIABLES: [&str; 6] = [
    "HOST",
    "PORT",
    "PATH",
    "TMPDIR",
    "FILESYSTEM_ROOT",
    "APPS_DATA_ROOT",
];

/// Places that belong to the environment or to the system.
const TAKEN: [&str; 7] = [
    "/filesystem",
    "/.apps_data",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/etc",
];

/// The least memory in which an environment starts.
const LEAST_MEMORY: u64 = 16 << 20;

/// The needs that `config` of the task in `folder` describes.
///
/// # Errors
/// One sentence for each problem, naming the key, the rule and the value.
pub(super) fn of(folder: &Path, config: &SandboxConfig) -> Result<Needs, Vec<String>> {
    let mut problems = Vec::new();
    let mut needs = Needs::default();
    needs.image.clone_from(&config.image);
    if config
        .image
        .as_ref()
        .is_some_and(|image| image.trim().is_empty())
    {
        problems.push("`image` must not be empty".to_owned());
    }
    needs.variables = variables(config, &mut problems);
    needs.resources = resources(config, &mut problems);
    for (index, mount) in config.mounts.iter().enumerate() {
        match bind(folder, mount) {
            Ok(mount) => needs.mounts.push(mount),
            Err(problem) => problems.push(format!("`mounts`, entry {}: {problem}", index + 1)),
        }
    }
    if problems.is_empty() {
        return Ok(needs);
    }
    let path = folder.join(file::SANDBOX_CONFIG);
    let named = problems
        .into_iter()
        .map(|problem| format!("sandbox configuration `{}`: {problem}", path.display()));
    Err(named.collect())
}

fn variables(config: &SandboxConfig, problems: &mut Vec<String>) -> Vec<(String, String)> {
    for (name, value) in &config.env {
        if OWN_VARIABLES.contains(&name.as_str()) {
            problems.push(format!("`env`: the sandbox sets `{name}` itself"));
        } else if !is_variable_name(name) {
            problems.push(format!(
                "`env`: a name consists of letters, digits and `_`, got `{name}`"
            ));
        } else if value.contains('\0') {
            problems.push(format!("`env`: the value of `{name}` holds a zero byte"));
        }
    }
    let pairs = config.env.iter();
    pairs.map(|(n, v)| (n.clone(), v.clone())).collect()
}

fn is_variable_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit())
}

fn resources(config: &SandboxConfig, problems: &mut Vec<String>) -> Resources {
    if let Some(bytes) = config.memory_bytes.filter(|bytes| *bytes < LEAST_MEMORY) {
        problems.push(format!(
            "`memory_bytes` must be at least {LEAST_MEMORY}, got {bytes}"
        ));
    }
    if let Some(cpus) = config.cpus.filter(|cpus| !(0.01..=4096.0).contains(cpus)) {
        problems.push(format!("`cpus` must be from 0.01 to 4096, got {cpus}"));
    }
    if let Some(pids) = config.pids.filter(|pids| *pids < 16) {
        problems.push(format!("`pids` must be at least 16, got {pids}"));
    }
    Resources {
        memory_bytes: config.memory_bytes,
        cpus: config.cpus,
        pids: config.pids,
        network: config.network,
    }
}

/// The mount with its source found inside of the task folder, also behind links.
fn bind(folder: &Path, mount: &TaskMount) -> Result<BindMount, String> {
    let TaskMount { source, target } = mount;
    let cannot = |error: std::io::Error| format!("cannot find `{source}`: {error}");
    let found = folder.join(source).canonicalize().map_err(cannot)?;
    let folder = folder.canonicalize().map_err(cannot)?;
    if Path::new(source).is_absolute() || !found.starts_with(&folder) {
        return Err(format!(
            "`source` must be relative to the task folder and inside of it, got `{source}`"
        ));
    }
    let path = Path::new(target);
    let regular = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !regular || path == Path::new("/") || target.contains(':') {
        return Err(format!(
            "`target` must be an absolute path without `..` or `:`, got `{target}`"
        ));
    }
    if let Some(taken) = TAKEN.iter().find(|taken| path.starts_with(taken)) {
        return Err(format!("`target` must not be in `{taken}`, got `{target}`"));
    }
    Ok(BindMount {
        source: found,
        target: target.clone(),
        writable: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> SandboxConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn everything_is_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("servers")).unwrap();
        let needs = of(
            folder.path(),
            &config(
                r#"{"image": "mine:2", "env": {"A_1": "x"}, "memory_bytes": 1073741824,
                    "cpus": 1.5, "pids": 100, "network": false,
                    "mounts": [{"source": "servers", "target": "/app/mcp_servers"}]}"#,
            ),
        )
        .unwrap();
        assert_eq!(needs.image.as_deref(), Some("mine:2"));
        assert_eq!(needs.variables, [("A_1".to_owned(), "x".to_owned())]);
        let resources = Resources {
            memory_bytes: Some(1 << 30),
            cpus: Some(1.5),
            pids: Some(100),
            network: Some(false),
        };
        assert_eq!(needs.resources, resources);
        let mount = BindMount {
            source: folder.path().canonicalize().unwrap().join("servers"),
            target: "/app/mcp_servers".to_owned(),
            writable: false,
        };
        assert_eq!(needs.mounts, [mount]);
    }

    #[test]
    fn every_problem_is_told() {
        // A folder around the task, in which nothing else is.
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("task");
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/etc", folder.join("link")).unwrap();
        std::fs::write(folder.join("file"), "").unwrap();
        let problems = of(
            &folder,
            &config(
                r#"{"image": " ", "env": {"PORT": "1", "A-B": "x"}, "memory_bytes": 4096,
                    "cpus": 0, "pids": 2,
                    "mounts": [{"source": "link", "target": "/app"},
                               {"source": "../x", "target": "/app"},
                               {"source": "/etc", "target": "/app"},
                               {"source": "file", "target": "app"},
                               {"source": "file", "target": "/app/../x"},
                               {"source": "file", "target": "/filesystem/x"}]}"#,
            ),
        )
        .unwrap_err();
        let expected = [
            "`image` must not be empty",
            "`A-B`",
            "`PORT`",
            "got 4096",
            "got 0",
            "got 2",
            "entry 1: `source` must be relative",
            "entry 2: cannot find `../x`",
            "entry 3: `source` must be relative",
            "entry 4: `target` must be an absolute path",
            "entry 5: `target` must be an absolute path",
            "entry 6: `target` must not be in `/filesystem`",
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.contains(expected), "{problem}: {expected}");
            assert!(problem.contains("sandbox_config.json"), "{problem}");
        }
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = serde_json::from_str::<SandboxConfig>(r#"{"memory": "2g"}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `memory`"),
            "{error}"
        );
    }
}
