//! The connection to a container engine.

use std::error::Error as _;
use std::time::Duration;

use bollard::query_parameters::RemoveContainerOptions;
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::sync::OnceCell;

use crate::SandboxError;

/// Where an engine listens when nobody says otherwise.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// For one answer of the engine, in seconds; it may be busy with many containers.
const ANSWER_SECONDS: u64 = 120;

/// How long a destructor may block until the engine has removed what was left.
const REMOVE_IN_DROP: Duration = Duration::from_secs(10);

/// A container engine with Docker's interface, on this machine or another one.
///
/// Nothing is asked of it before it is needed.
#[derive(Debug)]
pub struct Engine {
    host: String,
    docker: OnceCell<Docker>,
}

impl Engine {
    /// The engine at `host`, written as in `DOCKER_HOST`: `unix:///var/run/docker.sock`, which is
    /// the default, or `tcp://HOST:PORT`.
    #[must_use]
    pub fn new(host: Option<String>) -> Self {
        Self {
            host: host
                .filter(|host| !host.is_empty())
                .unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            docker: OnceCell::new(),
        }
    }

    /// The address, as in `DOCKER_HOST`.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The client, in the version that the engine speaks.
    pub(crate) async fn docker(&self) -> Result<&Docker, SandboxError> {
        let connect = async {
            let docker = connect(&self.host).map_err(|error| self.unreachable(&error))?;
            docker
                .negotiate_version()
                .await
                .map_err(|error| self.unreachable(&error))
        };
        self.docker.get_or_try_init(|| connect).await
    }

    /// The host name of another machine on which containers are reached; `None` for this one.
    pub(crate) fn remote(&self) -> Option<&str> {
        let (scheme, rest) = self.host.split_once("://")?;
        if !matches!(scheme, "tcp" | "http" | "https") {
            return None;
        }
        let authority = rest.split('/').next().unwrap_or(rest);
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        };
        let local = name == "localhost" || name.starts_with("127.") || name == "[::1]";
        (!local).then_some(name)
    }

    /// The error for an engine that does not answer.
    pub(crate) fn unreachable(&self, error: &bollard::errors::Error) -> SandboxError {
        SandboxError::Engine {
            host: self.host.clone(),
            reason: reason(error),
        }
    }

    /// The error for something that the engine did not do.
    pub(crate) fn refused(&self, doing: String, error: &bollard::errors::Error) -> SandboxError {
        match status(error) {
            Some(_) => SandboxError::Refused {
                doing,
                reason: reason(error),
            },
            None => self.unreachable(error),
        }
    }

    /// Removes a container or a network by name; blocks, for destructors.
    pub(crate) fn remove_in_drop(&self, what: Leftover) {
        let (done, wait) = std::sync::mpsc::channel();
        let host = self.host.clone();
        // A thread of its own: this one may belong to a runtime, in which nothing may block on
        // another one.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                let removed = runtime.block_on(async {
                    match connect(&host) {
                        Ok(docker) => match docker.negotiate_version().await {
                            Ok(docker) => what.remove(&docker).await,
                            Err(error) => Err(error),
                        },
                        Err(error) => Err(error),
                    }
                });
                if let Err(error) = removed {
                    tracing::warn!(error = reason(&error), ?what, "it could not be removed");
                }
            }
            // Nobody listens where it took too long.
            let _ = done.send(());
        });
        // The next run sweeps what this one cannot wait for.
        let _ = wait.recv_timeout(REMOVE_IN_DROP);
    }
}

/// Something in the engine that ends with its owner.
#[derive(Debug, Clone)]
pub(crate) enum Leftover {
    Container(String),
    Network(String),
}

impl Leftover {
    /// Removes it; that it is gone already is no error.
    pub(crate) async fn remove(&self, docker: &Docker) -> Result<(), bollard::errors::Error> {
        let removed = match self {
            Self::Container(name) => {
                let options = RemoveContainerOptions {
                    force: true,
                    // With the volumes that were made for it.
                    v: true,
                    link: false,
                };
                docker.remove_container(name, Some(options)).await
            }
            Self::Network(name) => docker.remove_network(name).await,
        };
        match removed {
            // 409: somebody else is removing it.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            other => other,
        }
    }
}

fn connect(host: &str) -> Result<Docker, bollard::errors::Error> {
    match host.split_once("://") {
        Some(("unix", _)) => Docker::connect_with_unix(host, ANSWER_SECONDS, API_DEFAULT_VERSION),
        Some(("tcp" | "http", _)) => {
            Docker::connect_with_http(host, ANSWER_SECONDS, API_DEFAULT_VERSION)
        }
        _ => Err(bollard::errors::Error::UnsupportedURISchemeError {
            uri: host.to_owned(),
        }),
    }
}

/// The status with which the engine answered, if it answered.
pub(crate) fn status(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether the engine said this itself, while it worked.
pub(crate) fn is_answer(error: &bollard::errors::Error) -> bool {
    status(error).is_some() || matches!(error, bollard::errors::Error::DockerStreamError { .. })
}

/// What went wrong, in one line.
pub(crate) fn reason(error: &bollard::errors::Error) -> String {
    use bollard::errors::Error;
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        Error::SocketNotFoundError(path) => format!("there is no socket `{path}`"),
        Error::UnsupportedURISchemeError { .. } => {
            "only unix:// and tcp:// are understood".to_owned()
        }
        Error::RequestTimeoutError => format!("no answer within {ANSWER_SECONDS} s"),
        other => {
            let mut text = other.to_string();
            let mut cause = other.source();
            while let Some(error) = cause {
                let more = error.to_string();
                if !text.contains(&more) {
                    text = format!("{text}: {more}");
                }
                cause = error.source();
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_other_machines_are_reached_under_their_names() {
        for (host, remote) in [
            ("unix:///var/run/docker.sock", None),
            ("tcp://127.0.0.1:2375", None),
            ("tcp://localhost:2375", None),
            ("tcp://[::1]:2375", None),
            ("tcp://builder:2375", Some("builder")),
            ("tcp://[fd00::7]:2375/", Some("[fd00::7]")),
            ("http://10.0.0.7:2375", Some("10.0.0.7")),
        ] {
            assert_eq!(
                Engine::new(Some(host.to_owned())).remote(),
                remote,
                "{host}"
            );
        }
        assert_eq!(Engine::new(Some(String::new())).host(), DEFAULT_HOST);
    }
}
