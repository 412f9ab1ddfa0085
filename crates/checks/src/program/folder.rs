//! The folder in which a program finds the worlds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eval::Case;
use eval::error::EvalError;
use evidence::Side;
use snapshot::{SUBSYSTEMS, World};

/// A folder of its own for a program, with worlds in it. It is removed as soon as nobody needs it:
/// also a world that is being laid out when the grading is cancelled leaves nothing behind.
#[derive(Clone)]
pub(crate) struct Folder(Arc<tempfile::TempDir>);

impl Folder {
    pub(crate) fn new() -> Result<Self, EvalError> {
        let folder = tempfile::tempdir().map_err(|error| Self::failed(&error))?;
        Ok(Self(Arc::new(folder)))
    }

    /// The error that there is no such folder, or that nothing can be written there.
    pub(crate) fn failed(error: &dyn std::fmt::Display) -> EvalError {
        EvalError::helper(format!("no folder for the program: {error}"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), EvalError> {
        std::fs::write(self.path().join(name), content).map_err(|error| Self::failed(&error))
    }

    /// Writes the files of a world of the case below `name`.
    pub(crate) async fn world(
        &self,
        case: &Case,
        side: Side,
        name: impl AsRef<Path>,
    ) -> Result<(), EvalError> {
        let (folder, to) = (self.clone(), self.path().join(name));
        case.evidence
            .in_world(side, move |world, limits| {
                let done = lay_out(world, &to, limits.laid_out_bytes);
                drop(folder);
                done
            })
            .await
    }

    /// Writes the files of the correct end state at `golden` below `name`.
    pub(crate) async fn golden(
        &self,
        case: &Case,
        golden: PathBuf,
        name: impl AsRef<Path>,
    ) -> Result<(), EvalError> {
        let (folder, to) = (self.clone(), self.path().join(name));
        case.evidence
            .in_world(Side::Final, move |_, limits| {
                let world = World::open(&golden).map_err(|e| EvalError::helper(e.to_string()))?;
                let done = lay_out(&world, &to, limits.laid_out_bytes);
                drop(folder);
                done
            })
            .await
    }
}

/// Writes the files of the world at `from` below `to`. Links are left out.
fn lay_out(from: &World, to: &Path, max_bytes: u64) -> Result<(), EvalError> {
    let failed = |path: &str, error: &dyn std::fmt::Display| {
        EvalError::helper(format!("`{path}` cannot be laid out: {error}"))
    };
    let mut left = max_bytes;
    for subsystem in SUBSYSTEMS {
        let folder = to.join(subsystem);
        std::fs::create_dir_all(&folder).map_err(|error| failed(subsystem, &error))?;
    }
    for entry in from.entries().iter().filter(|entry| entry.is_file()) {
        let path = entry.path();
        let Some((subsystem, rest)) = path.split_once('/') else {
            continue;
        };
        let is_plain = rest
            .split('/')
            .all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'));
        if !SUBSYSTEMS.contains(&subsystem) || !is_plain {
            continue;
        }
        left = left.checked_sub(entry.size()).ok_or_else(|| {
            let text =
                format!("the world has more than {max_bytes} bytes (limit `laid_out_bytes`)");
            EvalError::helper(text)
        })?;
        let target: PathBuf = to.join(subsystem).join(rest);
        let parent = target.parent().unwrap_or(to);
        std::fs::create_dir_all(parent).map_err(|error| failed(path, &error))?;
        let mut reader = from.reader(entry).map_err(|error| failed(path, &error))?;
        let mut file = std::fs::File::create(&target).map_err(|error| failed(path, &error))?;
        std::io::copy(&mut reader, &mut file).map_err(|error| failed(path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use eval::IsolationRule;
    use evidence::{Evidence, EvidenceLimits};
    use serde_json::json;

    use super::*;

    fn case(world: &Path) -> Case {
        let trajectory = json!({ "messages": [], "status": "completed", "time_elapsed": 1.0 });
        Case {
            verifier: serde_json::from_value(json!({
                "verifier_id": "v", "world_id": null, "task_id": "t", "eval_config_id": "e",
                "verifier_values": {}, "verifier_index": 0,
            }))
            .unwrap(),
            eval_config: serde_json::from_value(json!({
                "eval_config_id": "e", "eval_config_name": "e", "eval_defn_id": "command",
                "eval_config_values": {},
            }))
            .unwrap(),
            evidence: Arc::new(Evidence::new(
                serde_json::from_value(trajectory).unwrap(),
                world.to_owned(),
                world.to_owned(),
                EvidenceLimits::default(),
            )),
            dependencies: Vec::new(),
            judge: Err(EvalError::config("there is no judge")),
            task_folder: None,
            program_path: "/bin".into(),
            isolation: IsolationRule::Off,
        }
    }

    #[tokio::test]
    async fn a_world_that_is_being_laid_out_leaves_nothing_behind() {
        let world = tempfile::tempdir().unwrap();
        let files = world.path().join("filesystem");
        std::fs::create_dir(&files).unwrap();
        for n in 0..5_000 {
            std::fs::write(files.join(format!("{n}.txt")), b"x").unwrap();
        }
        let case = case(world.path());
        let folder = Folder::new().unwrap();
        let path = folder.path().to_owned();
        // Given up as soon as the first file is there.
        tokio::select! {
            done = folder.world(&case, Side::Final, "final") => done.unwrap(),
            () = async {
                while !path.join("final/filesystem").exists() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } => {}
        }
        assert!(path.exists());
        drop(folder);
        for _ in 0..600 {
            if !path.exists() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(!path.exists(), "{} is left", path.display());
    }
}
