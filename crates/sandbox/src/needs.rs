//! What one environment needs of its sandbox, beyond what all of them get.

use std::path::PathBuf;

use crate::SandboxError;

/// What the task of an environment asks for.
///
/// A sandbox that cannot show mounts or set variables refuses a task that has some. An image and
/// resources only mean something to containers; elsewhere they are left out, and the trial's log
/// says so.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Needs {
    /// The image of its container.
    pub image: Option<String>,
    /// Variables of the environment.
    pub variables: Vec<(String, String)>,
    /// Folders and files of this machine that it sees.
    pub mounts: Vec<BindMount>,
    /// What its container may use.
    pub resources: Resources,
}

/// A folder or file of the machine inside an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindMount {
    /// Where it is, absolute.
    pub source: PathBuf,
    /// Where it appears, absolute.
    pub target: String,
    /// Whether the environment may change it.
    pub writable: bool,
}

/// Resources of a container; `None` is nothing said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Resources {
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Processors, in parts of one.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Whether it reaches the world outside.
    pub network: Option<bool>,
}

impl Resources {
    /// What is said here, and where nothing is, what `other` says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            cpus: self.cpus.or(other.cpus),
            pids: self.pids.or(other.pids),
            network: self.network.or(other.network),
        }
    }
}

impl Needs {
    /// A remark about what means nothing to a sandbox without containers.
    pub(crate) fn without_containers(&self) -> Option<String> {
        let resources = self.resources;
        let left_out: Vec<&str> = [
            ("image", self.image.is_some()),
            ("memory_bytes", resources.memory_bytes.is_some()),
            ("cpus", resources.cpus.is_some()),
            ("pids", resources.pids.is_some()),
            ("network", resources.network.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, asked)| asked.then_some(name))
        .collect();
        (!left_out.is_empty()).then(|| {
            format!(
                "the task's `{}` only counts with `--sandbox docker`",
                left_out.join("`, `")
            )
        })
    }

    /// Refuses mounts where `sandbox` has no way to show them.
    pub(crate) fn refuse_mounts(&self, sandbox: &str) -> Result<(), SandboxError> {
        match self.mounts.first() {
            None => Ok(()),
            Some(mount) => Err(SandboxError::Unsupported(format!(
                "the task mounts `{}` at `{}`, which {sandbox} cannot do; use `--sandbox docker` \
                 with an engine on this machine",
                mount.source.display(),
                mount.target
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_counts() {
        let task = Resources {
            memory_bytes: Some(1),
            pids: Some(2),
            ..Resources::default()
        };
        let operator = Resources {
            memory_bytes: Some(3),
            network: Some(false),
            ..Resources::default()
        };
        let expected = Resources {
            memory_bytes: Some(3),
            cpus: None,
            pids: Some(2),
            network: Some(false),
        };
        assert_eq!(operator.or(task), expected);
    }

    #[test]
    fn what_only_containers_know_is_named() {
        let mut needs = Needs::default();
        assert_eq!(needs.without_containers(), None);
        needs.image = Some("x".to_owned());
        needs.resources.network = Some(false);
        let remark = needs.without_containers().unwrap();
        assert!(remark.contains("`image`, `network`"), "{remark}");
    }
}
