//! Saving the final state of the world, and comparing it with the first.

use formats::document;
use formats::owner::{Failure, Owner};
use formats::run::file;
use sandbox::RunningEnvironment;
use snapshot::Limits;

use super::{Stopped, Trial};
use crate::blocking;
use crate::world::InitialWorld;

impl Trial<'_> {
    /// Leaves `final_snapshot.zip` and `diff.json` in the trial folder.
    pub(super) async fn save_snapshot(
        &self,
        environment: &RunningEnvironment,
    ) -> Result<(), Stopped> {
        let archive = self.folder.join(file::FINAL_SNAPSHOT_TAR);
        let zip = self.folder.join(file::FINAL_SNAPSHOT);
        environment
            .client()
            .snapshot(&archive)
            .await
            .map_err(|error| error.failure())?;
        let before = InitialWorld::of(&self.plan.task)?;
        let diff = blocking(move || {
            snapshot::archive::tar_gz_to_zip(&archive, &zip, &Limits::default())
                .map_err(|error| spoiled(&error))?;
            // The zip holds the same; the archive was only the way to it.
            std::fs::remove_file(&archive).map_err(|error| spoiled(&error))?;
            crate::world::compare(before.path(), &zip).map_err(|error| spoiled(&error))
        })
        .await?;
        document::write("diff", &self.folder.join(file::DIFF), &diff)?;
        Ok(())
    }
}

/// A snapshot of ours that cannot be used.
fn spoiled(error: &dyn std::error::Error) -> Failure {
    Failure::new(Owner::Infrastructure, "snapshot", error.to_string())
}
