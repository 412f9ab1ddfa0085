//! How many processes a program has, and their end.
//!
//! A limit of the kernel counts all processes of a user, or none where the user is root. So they
//! are counted here, by what `/proc` says, often enough that a program which starts one after the
//! other is stopped while the machine still has room.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Time between two counts.
const INTERVAL: Duration = Duration::from_millis(50);

/// All processes of the machine, and when they were looked up. Programs that run at the same time
/// share it: reading all of `/proc` takes milliseconds.
static TABLE: Mutex<Option<(Instant, Arc<[Process]>)>> = Mutex::new(None);

/// Waits until the program that leads the process group `leader` has more than `limit` processes,
/// kills all of them, and returns their number. It never returns where they cannot be counted.
pub(super) async fn outgrown(leader: Option<i32>, limit: usize) -> usize {
    let Some(leader) = leader else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Ok(members) = tokio::task::spawn_blocking(move || members(leader)).await else {
            return std::future::pending().await;
        };
        if members.len() > limit {
            for member in &members {
                // It may be gone already.
                let _ = kill(Pid::from_raw(*member), Signal::SIGKILL);
            }
            return members.len();
        }
    }
}

/// The processes of the group of `leader`, and those that descend from one of them.
fn members(leader: i32) -> HashSet<i32> {
    let all = processes();
    let group = all.iter().filter(|one| one.group == leader);
    let mut members: HashSet<i32> = group.map(|one| one.id).collect();
    loop {
        let before = members.len();
        let children = all.iter().filter(|one| members.contains(&one.parent));
        let children: Vec<i32> = children.map(|one| one.id).collect();
        members.extend(children);
        if members.len() == before {
            return members;
        }
    }
}

/// All processes, as they were a moment ago.
fn processes() -> Arc<[Process]> {
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((at, processes)) = &*table
        && at.elapsed() < INTERVAL / 2
    {
        return Arc::clone(processes);
    }
    let processes: Arc<[Process]> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            Process::of(id, &stat)
        })
        .collect();
    *table = Some((Instant::now(), Arc::clone(&processes)));
    processes
}

/// One process of the machine.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

impl Process {
    /// Reads `/proc/<id>/stat`; the name of the program in it may hold blanks and brackets.
    fn of(id: i32, stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(1);
        let mut field = || fields.next()?.parse().ok();
        Some(Self {
            id,
            parent: field()?,
            group: field()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_stand_behind_the_name() {
        let stat = "17 (odd) name (x)) S 4 9 9 0 -1 4194304";
        let process = Process {
            id: 17,
            parent: 4,
            group: 9,
        };
        assert_eq!(Process::of(17, stat), Some(process));
        assert_eq!(Process::of(17, "17 (cut"), None);
    }
}
