//! The processes of a session.
//!
//! An environment leads a session. Its servers may lead process groups of their own, but they stay
//! in the session, also when the process that started them is gone; so the session is what finds
//! them all.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Asks every process of the environment's own group to end.
pub(crate) fn terminate(session: Pid) {
    // It may have ended by itself in the meantime.
    let _ = killpg(session, Signal::SIGTERM);
}

/// Kills whatever is left of `session` and returns how many processes that took.
pub(crate) fn kill_members(session: Pid) -> usize {
    let members = members(session);
    for member in &members {
        let _ = kill(*member, Signal::SIGKILL);
    }
    // Where there is no `/proc`, this is all that can be done.
    let _ = killpg(session, Signal::SIGKILL);
    members.len()
}

/// Whether anything of `session` lives.
pub(crate) fn is_alive(session: Pid) -> bool {
    !members(session).is_empty()
}

/// Kills `session` until nothing of it is left, for at most `limit`; blocks.
///
/// For destructors, where nothing can be awaited.
pub(crate) fn kill_and_wait(session: Pid, limit: Duration) {
    let begin = Instant::now();
    while kill_members(session) > 0 && begin.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The living processes of `session` as `/proc` lists them; none where there is no `/proc`.
///
/// Processes that only wait to be reaped do not count.
fn members(session: Pid) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| lives_in(&stat, session.as_raw()))
        })
        .map(Pid::from_raw)
        .collect()
}

/// Whether the process of this line of `/proc/PID/stat` (proc(5)) belongs to `session` and lives.
fn lives_in(stat: &str, session: i32) -> bool {
    // The name in brackets may hold blanks and brackets; what follows the last one is regular:
    // state, parent, group, session.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let in_session = fields.nth(2).and_then(|field| field.parse().ok()) == Some(session);
    in_session && !matches!(state, Some("Z" | "X" | "x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_is_read_behind_the_name() {
        assert!(lives_in("12 (a b) c) S 1 10 10 0 -1", 10));
        assert!(!lives_in("12 (sh) S 1 10 11 0 -1", 10));
        assert!(!lives_in("12 (sh) Z 1 10 10 0 -1", 10));
        assert!(!lives_in("", 10));
    }
}
