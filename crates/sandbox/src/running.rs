//! An environment that runs.

use std::path::{Path, PathBuf};

use formats::apps::AppsConfig;

use crate::client::EnvironmentClient;
use crate::docker::ContainerGuard;
use crate::error::EnvironmentDied;
use crate::process::ProcessGuard;
use crate::rewrite;

/// An environment that answers, together with whatever has to be stopped at its end.
///
/// [`RunningEnvironment::stop`] ends it in order. Dropping it kills its processes and removes its
/// folder or its container at once, which may block for a moment.
#[derive(Debug)]
pub struct RunningEnvironment {
    client: EnvironmentClient,
    back_end: BackEnd,
    remarks: Vec<String>,
}

/// What stands behind the address.
#[derive(Debug)]
enum BackEnd {
    Process(Box<ProcessGuard>),
    Container(Box<ContainerGuard>),
    Given,
}

impl RunningEnvironment {
    pub(crate) const fn process(
        client: EnvironmentClient,
        guard: Box<ProcessGuard>,
        remarks: Vec<String>,
    ) -> Self {
        Self {
            client,
            back_end: BackEnd::Process(guard),
            remarks,
        }
    }

    pub(crate) const fn container(client: EnvironmentClient, guard: Box<ContainerGuard>) -> Self {
        Self {
            client,
            back_end: BackEnd::Container(guard),
            remarks: Vec::new(),
        }
    }

    pub(crate) const fn given(client: EnvironmentClient, remarks: Vec<String>) -> Self {
        Self {
            client,
            back_end: BackEnd::Given,
            remarks,
        }
    }

    /// The address without a final slash, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.client.base_url()
    }

    /// A client for it.
    #[must_use]
    pub fn client(&self) -> EnvironmentClient {
        self.client.clone()
    }

    /// Where the environment keeps `filesystem` and `.apps_data` on this machine; `None` where
    /// they are at `/filesystem` and `/.apps_data` of another root.
    #[must_use]
    pub fn roots(&self) -> Option<(&Path, &Path)> {
        match &self.back_end {
            BackEnd::Process(guard) => guard.roots(),
            BackEnd::Container(_) | BackEnd::Given => None,
        }
    }

    /// What deserves attention about how it was started, for the trial's log: whether and how it
    /// is isolated, and what its task asks for that does not count here.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Makes `config` fit this environment: where its roots are not `/filesystem` and
    /// `/.apps_data`, these two prefixes are replaced in `cwd`, `args` and `env` of every server.
    ///
    /// Returns one sentence per change, for the trial's log. A prefix counts at the start of a
    /// value and after `=`, `:`, `,`, `;`, a quote, a bracket or a blank, and only as a whole
    /// path component: `/filesystems` stays.
    pub fn rewrite(&self, config: &mut AppsConfig) -> Vec<String> {
        match self.roots() {
            Some((filesystem, apps_data)) => rewrite::rewrite(config, filesystem, apps_data),
            None => Vec::new(),
        }
    }

    /// Says whether the environment still runs, as far as the sandbox can know.
    ///
    /// # Errors
    /// [`EnvironmentDied`] with its exit status and last lines. An environment that someone else
    /// started is never reported here; its health check tells.
    pub async fn check(&self) -> Result<(), EnvironmentDied> {
        match &self.back_end {
            BackEnd::Process(guard) => guard.life().check().await,
            BackEnd::Container(guard) => guard.life().check().await,
            BackEnd::Given => Ok(()),
        }
    }

    /// Ends the environment and removes what it left on the machine.
    pub async fn stop(self) -> Stopped {
        match self.back_end {
            BackEnd::Process(guard) => guard.stop().await,
            BackEnd::Container(guard) => guard.stop().await,
            BackEnd::Given => Stopped {
                kind: StopKind::LeftAlone,
                exit: None,
                kept: None,
                remarks: Vec::new(),
            },
        }
    }
}

/// How an environment ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// What it took.
    pub kind: StopKind,
    /// `exit status 0` or `signal 9 (SIGKILL)`, where the sandbox could see it.
    pub exit: Option<String>,
    /// The folder with its roots, where it was asked to be kept.
    pub kept: Option<PathBuf>,
    /// What deserves attention: processes that had to be killed, folders that could not be
    /// removed.
    pub remarks: Vec<String>,
}

/// What it took to end an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopKind {
    /// It had ended before.
    AlreadyEnded,
    /// It ended when its standard input was closed.
    Asked,
    /// It ended on `SIGTERM`.
    Terminated,
    /// It had to be killed.
    Killed,
    /// It is not ours to stop.
    LeftAlone,
}
