//! A world in whatever form, sent to an environment.

use std::path::{Path, PathBuf};

use ::snapshot::Limits;
use ::snapshot::archive::{ConvertError, zip_to_subsystem_tars};

use super::{ClientError, EnvironmentClient, Populated};

/// Archives by subsystem, and the folder that holds them until they are sent.
struct Archives {
    by_subsystem: Vec<(String, PathBuf)>,
    _folder: tempfile::TempDir,
}

impl EnvironmentClient {
    /// Fills the environment from `world`: a zip, a tar, a `tar.gz` or a folder, with
    /// `filesystem/` and `.apps_data/` at its top, or with neither, which makes all of it
    /// `filesystem` (`spec/orchestration.md` §10).
    ///
    /// The world is converted on disk before anything is sent, so that one that is damaged or
    /// crosses a limit changes nothing. Returns one answer per subsystem that has anything in it.
    ///
    /// # Errors
    /// [`ClientError::World`] where the world cannot be used, else as
    /// [`EnvironmentClient::populate`].
    pub async fn populate_world(&self, world: &Path) -> Result<Vec<Populated>, ClientError> {
        let (path, root) = (world.to_owned(), self.settings.temporary_root.clone());
        let limits = self.settings.world.clone();
        let convert = move || convert(&path, &root, &limits);
        let archives = match tokio::task::spawn_blocking(convert).await {
            Ok(archives) => archives?,
            // The conversion panicked, or the runtime is going down.
            Err(error) => return Err(world_error(world, &error)),
        };
        let mut populated = Vec::new();
        for (subsystem, archive) in &archives.by_subsystem {
            populated.push(self.populate(subsystem, archive).await?);
        }
        Ok(populated)
    }
}

fn convert(world: &Path, root: &Path, limits: &Limits) -> Result<Archives, ClientError> {
    let folder = tempfile::Builder::new()
        .prefix("archipelago-world-")
        .tempdir_in(root)
        .map_err(|source| ClientError::Write {
            path: root.to_owned(),
            source,
        })?;
    match zip_to_subsystem_tars(world, folder.path(), limits) {
        Ok(by_subsystem) => Ok(Archives {
            by_subsystem,
            _folder: folder,
        }),
        Err(ConvertError::Output { path, source }) => Err(ClientError::Write { path, source }),
        Err(error) => Err(world_error(world, &error)),
    }
}

fn world_error(world: &Path, error: &dyn std::error::Error) -> ClientError {
    ClientError::World {
        path: world.to_owned(),
        reason: error.to_string(),
    }
}
