//! One container: start, watch, stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse, ContainerState};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, LogsOptions, StopContainerOptions,
    WaitContainerOptions,
};
use futures::TryStreamExt as _;
use tokio::task::JoinHandle;
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use super::body::PORT;
use super::engine::{self, Engine, Leftover};
use super::network::Network;
use super::{ContainerLimits, ContainerWaits};
use crate::client::{ClientSettings, EnvironmentClient};
use crate::life::{Life, Watch};
use crate::log;
use crate::running::{StopKind, Stopped};
use crate::{RunningEnvironment, SandboxError};

/// How often a start is tried whose port was taken by somebody else in the same moment.
const START_ATTEMPTS: u32 = 3;

/// Between two looks at a container whose end the engine did not tell.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the engine may need for a stop beyond what the container is given, and for a removal.
const ENGINE_WORK: Duration = Duration::from_secs(60);

/// Everything that is needed to start one.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) body: ContainerCreateBody,
    pub(super) network: Arc<Network>,
    /// Where its published port is; `None` where it is reached at its own address.
    pub(super) host: Option<String>,
    pub(super) log: tokio::fs::File,
    pub(super) log_path: PathBuf,
    pub(super) limits: ContainerLimits,
    pub(super) waits: ContainerWaits,
    pub(super) client: ClientSettings,
    pub(super) keep: bool,
}

/// Owns a container. Dropping it removes it, or stops it where it is to be kept.
#[derive(Debug)]
pub(crate) struct ContainerGuard {
    engine: Arc<Engine>,
    docker: Docker,
    name: String,
    life: Arc<Life>,
    waits: ContainerWaits,
    keep: bool,
    settled: bool,
    tasks: Vec<JoinHandle<()>>,
    /// Held as long as the container uses it.
    _network: Arc<Network>,
}

/// Makes the container and waits until its environment answers.
pub(super) async fn start(
    engine: Arc<Engine>,
    plan: Plan,
    cancel: CancellationToken,
) -> Result<RunningEnvironment, SandboxError> {
    let docker = engine.docker().await?.clone();
    let options = CreateContainerOptions {
        name: Some(plan.name.clone()),
        platform: String::new(),
    };
    let (life, watch) = Life::new(plan.log_path);
    let mut guard = ContainerGuard {
        engine,
        docker,
        name: plan.name,
        life: Arc::new(life),
        waits: plan.waits,
        keep: plan.keep,
        settled: false,
        tasks: Vec::new(),
        _network: plan.network,
    };
    let created = guard.docker.create_container(Some(options), plan.body);
    created
        .await
        .map_err(|error| guard.refused("make", &error))?;
    let ready = async {
        guard.run().await?;
        guard.watch(watch, plan.log, plan.limits);
        guard.wait_until_ready(plan.host, plan.client).await
    };
    let started = tokio::select! {
        () = cancel.cancelled() => Err(SandboxError::Cancelled),
        ready = ready => ready,
    };
    match started {
        Ok(client) => Ok(RunningEnvironment::container(client, Box::new(guard))),
        Err(error) => {
            guard.keep = false;
            for remark in guard.stop().await.remarks {
                tracing::warn!("{remark}");
            }
            Err(error)
        }
    }
}

impl ContainerGuard {
    /// What others may know of the container.
    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    fn refused(&self, doing: &str, error: &bollard::errors::Error) -> SandboxError {
        self.engine
            .refused(format!("{doing} the container `{}`", self.name), error)
    }

    async fn run(&self) -> Result<(), SandboxError> {
        for attempt in 1.. {
            let started = self.docker.start_container(&self.name, None::<_>).await;
            match started {
                Ok(()) => break,
                Err(error) if attempt < START_ATTEMPTS && is_port_taken(&error) => {}
                Err(error) => return Err(self.refused("start", &error)),
            }
        }
        Ok(())
    }

    /// Follows the output into the log, and waits for the end.
    fn watch(&mut self, watch: Watch, file: tokio::fs::File, limits: ContainerLimits) {
        let Watch {
            exit,
            log_ended,
            last,
        } = watch;
        let (docker, name, log_limits) = (self.docker.clone(), self.name.clone(), self.waits.log());
        self.tasks.push(tokio::spawn(async move {
            let options = LogsOptions {
                follow: true,
                stdout: true,
                stderr: true,
                tail: "all".to_owned(),
                ..LogsOptions::default()
            };
            let output = docker
                .logs(&name, Some(options))
                .map_ok(bollard::container::LogOutput::into_bytes)
                .map_err(std::io::Error::other);
            log::follow(
                StreamReader::new(Box::pin(output)),
                file,
                last,
                None,
                log_limits,
            )
            .await;
            log_ended.send_replace(true);
        }));
        let (docker, name) = (self.docker.clone(), self.name.clone());
        self.tasks.push(tokio::spawn(async move {
            let end = end_of(&docker, &name, &limits).await;
            exit.send_replace(Some(end));
        }));
    }

    async fn wait_until_ready(
        &self,
        host: Option<String>,
        settings: ClientSettings,
    ) -> Result<EnvironmentClient, SandboxError> {
        let address = self.address(host).await?;
        let client = EnvironmentClient::new(&format!("http://{address}"), settings)
            .map_err(|error| SandboxError::Unhealthy(Box::new(error)))?
            .of_life(Arc::clone(&self.life));
        tokio::select! {
            healthy = client.wait_until_healthy(self.waits.ready) => {
                match (healthy, self.life.check().await) {
                    (Ok(()), _) => Ok(client),
                    (Err(_), Err(died)) => Err(SandboxError::Died(died)),
                    (Err(error), Ok(())) => Err(SandboxError::NotHealthy {
                        source: Box::new(error),
                        last_lines: self.life.last_lines(),
                    }),
                }
            }
            Some(died) = self.life.ended_within(self.waits.ready + ENGINE_WORK) => {
                Err(SandboxError::Died(died))
            }
        }
    }

    /// `HOST:PORT` of the environment.
    async fn address(&self, host: Option<String>) -> Result<String, SandboxError> {
        let inspected = inspect(&self.docker, &self.name)
            .await
            .map_err(|error| self.refused("inspect", &error))?;
        let found = match &host {
            Some(host) => published_port(&inspected).map(|port| format!("{host}:{port}")),
            None => own_address(&inspected).map(|address| format!("{address}:8080")),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        // A container that ended at once has no address any more.
        match self.life.ended_within(Duration::from_secs(5)).await {
            Some(died) => Err(SandboxError::Died(died)),
            None => Err(SandboxError::Refused {
                doing: format!("find the address of the container `{}`", self.name),
                reason: format!("the engine tells none for {PORT}"),
            }),
        }
    }

    /// Ends the container and removes it, or leaves it where it is to be kept.
    pub(crate) async fn stop(mut self) -> Stopped {
        let mut remarks = Vec::new();
        let (kind, exit) = match tokio::time::timeout(
            self.waits.stop_terminated + ENGINE_WORK,
            self.end(&mut remarks),
        )
        .await
        {
            Ok(ended) => ended,
            Err(_) => {
                remarks.push("the engine did not stop the container in time".to_owned());
                (StopKind::Killed, None)
            }
        };
        self.settled = true;
        if self.keep {
            remarks.push(format!(
                "the container `{0}` is kept: `docker logs {0}`, `docker cp {0}:/filesystem DIR`, \
                 `docker rm -fv {0}`",
                self.name
            ));
        } else {
            let container = Leftover::Container(self.name.clone());
            let removed = tokio::time::timeout(ENGINE_WORK, container.remove(&self.docker)).await;
            let problem = match removed {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(engine::reason(&error)),
                Err(_) => Some(format!("no answer within {ENGINE_WORK:?}")),
            };
            remarks.extend(problem.map(|problem| {
                format!(
                    "the container `{}` could not be removed: {problem}",
                    self.name
                )
            }));
        }
        Stopped {
            kind,
            exit,
            kept: None,
            remarks,
        }
    }

    async fn end(&self, remarks: &mut Vec<String>) -> (StopKind, Option<String>) {
        let kind = if let Some(exit) = self.life.exit() {
            return (StopKind::AlreadyEnded, Some(exit));
        } else {
            let options = StopContainerOptions {
                signal: None,
                t: i32::try_from(self.waits.stop_terminated.as_secs()).ok(),
            };
            match self.docker.stop_container(&self.name, Some(options)).await {
                Ok(()) => StopKind::Terminated,
                Err(error) => {
                    remarks.push(format!(
                        "the container `{}` could not be stopped: {}",
                        self.name,
                        engine::reason(&error)
                    ));
                    StopKind::Killed
                }
            }
        };
        // What it printed last should be in the log before it is removed.
        let _ = self.life.ended_within(Duration::from_secs(5)).await;
        let state = inspect(&self.docker, &self.name)
            .await
            .ok()
            .and_then(|inspected| inspected.state)
            .unwrap_or_default();
        if state.oom_killed == Some(true) {
            remarks.push(format!(
                "something in the container `{}` was killed because its memory was used up",
                self.name
            ));
        }
        let killed = state.exit_code == Some(137);
        (
            if killed { StopKind::Killed } else { kind },
            self.life.exit(),
        )
    }
}

impl Drop for ContainerGuard {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        if !self.settled {
            self.engine
                .remove_in_drop(Leftover::Container(self.name.clone()));
        }
    }
}

/// Waits until the container does not run any more, and says how it ended.
async fn end_of(docker: &Docker, name: &str, limits: &ContainerLimits) -> String {
    loop {
        let options = WaitContainerOptions {
            condition: "not-running".to_owned(),
        };
        // Whatever it says, the state says more.
        let _ = docker
            .wait_container(name, Some(options))
            .try_collect::<Vec<_>>()
            .await;
        match inspect(docker, name).await {
            Ok(inspected) => match inspected.state {
                Some(state) if state.running != Some(true) => return describe(&state, limits),
                _ => {}
            },
            Err(error) if engine::status(&error) == Some(404) => {
                return "its removal by somebody else".to_owned();
            }
            // The engine may be starting again; the container lives on by itself.
            Err(_) => {}
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn inspect(
    docker: &Docker,
    name: &str,
) -> Result<ContainerInspectResponse, bollard::errors::Error> {
    docker
        .inspect_container(name, None::<InspectContainerOptions>)
        .await
}

/// `exit status 3`, or `signal 9 (SIGKILL), out of memory: the limit is 512 MiB`.
fn describe(state: &ContainerState, limits: &ContainerLimits) -> String {
    let code = state.exit_code.unwrap_or_default();
    let signal = i32::try_from(code - 128)
        .ok()
        .and_then(|number| nix::sys::signal::Signal::try_from(number).ok());
    let mut text = match signal {
        // An init or a shell tells the signal that ended its child in this way.
        Some(signal) => format!("signal {} ({})", signal as i32, signal.as_str()),
        None => format!("exit status {code}"),
    };
    if state.oom_killed == Some(true) {
        text += ", out of memory";
        if let Some(bytes) = limits.memory_bytes {
            text += &format!(": the limit is {} MiB", bytes >> 20);
        }
    }
    if let Some(error) = state.error.as_ref().filter(|error| !error.is_empty()) {
        text += &format!(" ({error})");
    }
    text
}

fn is_port_taken(error: &bollard::errors::Error) -> bool {
    let reason = engine::reason(error);
    reason.contains("port is already allocated") || reason.contains("address already in use")
}

fn published_port(inspected: &ContainerInspectResponse) -> Option<&str> {
    let ports = inspected.network_settings.as_ref()?.ports.as_ref()?;
    ports
        .get(PORT)?
        .as_ref()?
        .iter()
        .find_map(|binding| binding.host_port.as_deref())
}

fn own_address(inspected: &ContainerInspectResponse) -> Option<&str> {
    let networks = inspected.network_settings.as_ref()?.networks.as_ref()?;
    networks
        .values()
        .filter_map(|network| network.ip_address.as_deref())
        .find(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_container_is_told_in_words() {
        let limits = ContainerLimits {
            memory_bytes: Some(512 << 20),
            ..ContainerLimits::default()
        };
        let state = |exit_code, oom_killed| ContainerState {
            exit_code: Some(exit_code),
            oom_killed: Some(oom_killed),
            ..ContainerState::default()
        };
        for (state, expected) in [
            (state(0, false), "exit status 0"),
            (state(3, false), "exit status 3"),
            (state(143, false), "signal 15 (SIGTERM)"),
            (
                state(137, true),
                "signal 9 (SIGKILL), out of memory: the limit is 512 MiB",
            ),
            (
                ContainerState {
                    error: Some("no space left on device".to_owned()),
                    ..state(128, false)
                },
                "exit status 128 (no space left on device)",
            ),
        ] {
            assert_eq!(describe(&state, &limits), expected);
        }
    }
}
