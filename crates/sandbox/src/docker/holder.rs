//! Whose a container is, and whether that program still lives.
//!
//! A program that is killed leaves its containers running. Their labels say which process made
//! them, so that the next one can tell orphans from the containers of programs that run beside it.

use std::collections::HashMap;

/// The labels on everything that a sandbox makes.
pub(crate) mod label {
    /// Process id of the program that made it.
    pub(crate) const PID: &str = "archipelago.owner.pid";
    /// When that process started, in clock ticks since the boot: numbers of processes come back.
    pub(crate) const START: &str = "archipelago.owner.start";
    /// The boot of the machine on which it runs.
    pub(crate) const BOOT: &str = "archipelago.owner.boot";
    /// Its namespace of process ids: in another one the number means nothing.
    pub(crate) const NAMESPACE: &str = "archipelago.owner.pid-namespace";
    /// The trial.
    pub(crate) const TRIAL: &str = "archipelago.trial";
    /// `true` where it stays after its trial, to be looked into.
    pub(crate) const KEPT: &str = "archipelago.kept";
}

/// The program that made something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pid: u32,
    start: String,
    boot: String,
    namespace: String,
}

impl Holder {
    /// This program; `None` where there is no `/proc` to tell.
    pub(crate) fn this() -> Option<Self> {
        Some(Self {
            pid: std::process::id(),
            start: start_of(std::process::id())?,
            boot: read("/proc/sys/kernel/random/boot_id")?,
            namespace: namespace()?,
        })
    }

    /// The labels that name it.
    pub(crate) fn labels(&self) -> HashMap<String, String> {
        [
            (label::PID, self.pid.to_string()),
            (label::START, self.start.clone()),
            (label::BOOT, self.boot.clone()),
            (label::NAMESPACE, self.namespace.clone()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// The one that `labels` name.
    pub(crate) fn named(labels: &HashMap<String, String>) -> Option<Self> {
        Some(Self {
            pid: labels.get(label::PID)?.parse().ok()?,
            start: labels.get(label::START)?.clone(),
            boot: labels.get(label::BOOT)?.clone(),
            namespace: labels.get(label::NAMESPACE)?.clone(),
        })
    }

    /// Whether it is certain that this program runs no more, as seen by `observer`.
    ///
    /// What was made on another machine or in another namespace is never certain: its process
    /// cannot be seen from here.
    pub(crate) fn is_gone(&self, observer: &Self) -> bool {
        self.boot == observer.boot
            && self.namespace == observer.namespace
            && start_of(self.pid).as_ref() != Some(&self.start)
    }
}

/// When the process started (proc(5), field 22 of `stat`), if it runs.
fn start_of(pid: u32) -> Option<String> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The name in brackets may hold blanks and brackets. Behind it stands the state, field 3.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?;
    (!matches!(state, "Z" | "X" | "x")).then(|| start.to_owned())
}

fn namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_string_lossy().into_owned())
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_dead_is_gone() {
        let this = Holder::this().unwrap();
        assert_eq!(Holder::named(&this.labels()), Some(this.clone()));
        assert!(!this.is_gone(&this));

        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id();
        ended.wait().unwrap();
        let gone = Holder {
            pid,
            ..this.clone()
        };
        assert!(gone.is_gone(&this));
        let reused = Holder {
            start: "1".to_owned(),
            ..this.clone()
        };
        assert!(
            reused.is_gone(&this),
            "the number belongs to another process"
        );
        for elsewhere in [
            Holder {
                boot: "another".to_owned(),
                ..gone.clone()
            },
            Holder {
                namespace: "pid:[1]".to_owned(),
                ..gone.clone()
            },
        ] {
            assert!(!elsewhere.is_gone(&this));
        }
        assert_eq!(Holder::named(&HashMap::new()), None);
    }
}
