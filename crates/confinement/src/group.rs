//! The end of a program and of all that it started.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The process group of a program, which it leads. All of it is killed when this is dropped: also what the
/// program left running, and also when nobody waits for it any more.
#[derive(Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group that the process `id` leads; none where it has been waited for already.
    #[must_use]
    pub fn of(id: Option<u32>) -> Self {
        Self(id.and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// The number of the process that leads it.
    #[must_use]
    pub fn leader(&self) -> Option<i32> {
        self.0.map(Pid::as_raw)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may be gone already.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}
