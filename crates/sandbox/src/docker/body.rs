//! What the engine is told about a container.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, ImageInspect, Mount,
    MountType, PortBinding,
};

use super::{ContainerLimits, DockerSandbox};
use crate::Needs;
use crate::docker::holder::{Holder, label};
use crate::sandbox::{APPS_DATA, FILESYSTEM};

/// The port on which the environment listens inside (`spec/environment.md` §1).
pub(super) const PORT: &str = "8080/tcp";

/// The roots of a world inside.
const ROOTS: [&str; 2] = [FILESYSTEM, APPS_DATA];

/// What an image says of itself in this label: its root may be read-only, and these folders,
/// separated by blanks, have to be writable.
const READ_ONLY_ROOT: &str = "archipelago.read-only-root";

/// What an image says about the containers that are made of it.
#[derive(Debug, Default)]
pub(super) struct ImageFacts {
    /// Where the root may be read-only: the folders that have to be writable.
    writable: Option<Vec<String>>,
    /// The numbers of its user and group, where it gives numbers.
    user: Option<(u32, u32)>,
}

impl ImageFacts {
    pub(super) fn of(image: &ImageInspect) -> Self {
        let Some(config) = &image.config else {
            return Self::default();
        };
        let writable = config.labels.as_ref().and_then(|labels| {
            let folders = labels.get(READ_ONLY_ROOT)?;
            Some(folders.split_whitespace().map(str::to_owned).collect())
        });
        let user = config.user.as_ref().and_then(|user| {
            let (user, group) = user.split_once(':')?;
            Some((user.parse().ok()?, group.parse().ok()?))
        });
        Self { writable, user }
    }
}

/// Where the container is reached from here.
pub(super) enum Reach<'a> {
    /// Through a free loopback port of this machine.
    Loopback,
    /// Through a free port of the engine's machine.
    Machine(&'a str),
    /// At its own address: a network without a way out has no published ports.
    OwnAddress,
}

/// What is particular to one container.
pub(super) struct Occasion<'a> {
    pub(super) trial: &'a str,
    pub(super) image: &'a str,
    pub(super) facts: &'a ImageFacts,
    pub(super) network: &'a str,
    pub(super) reach: &'a Reach<'a>,
    pub(super) limits: &'a ContainerLimits,
    pub(super) needs: &'a Needs,
}

impl DockerSandbox {
    /// The whole description of a container.
    pub(super) fn body(&self, occasion: &Occasion<'_>) -> ContainerCreateBody {
        let &Occasion {
            trial,
            image,
            facts,
            network,
            reach,
            limits,
            needs,
        } = occasion;
        let mut labels = Holder::this().map(|this| this.labels()).unwrap_or_default();
        labels.insert(label::TRIAL.to_owned(), trial.to_owned());
        labels.insert(label::KEPT.to_owned(), self.keep.to_string());
        ContainerCreateBody {
            image: Some(image.to_owned()),
            hostname: Some("environment".to_owned()),
            env: Some(self.environment(reach, needs)),
            exposed_ports: Some(vec![PORT.to_owned()]),
            // Volumes of its own, which go with it; what the image has there is copied.
            volumes: (facts.writable.is_some() && limits.world_bytes.is_none())
                .then(|| ROOTS.map(str::to_owned).to_vec()),
            labels: Some(labels),
            // The client asks over HTTP, more often and from outside.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            host_config: Some(HostConfig {
                network_mode: Some(network.to_owned()),
                port_bindings: port_bindings(reach),
                cap_drop: Some(vec!["ALL".to_owned()]),
                security_opt: Some(vec!["no-new-privileges".to_owned()]),
                readonly_rootfs: Some(facts.writable.is_some()),
                tmpfs: Some(in_memory(facts, limits)),
                mounts: Some(self.bind_mounts(needs)),
                init: Some(true),
                log_config: Some(log_config()),
                ..limited(limits)
            }),
            ..ContainerCreateBody::default()
        }
    }

    fn environment(&self, reach: &Reach<'_>, needs: &Needs) -> Vec<String> {
        let allowed = match reach {
            Reach::Loopback => None,
            Reach::Machine(name) => Some((*name).to_owned()),
            // The address is not known yet, and only this machine can reach it.
            Reach::OwnAddress => Some("*".to_owned()),
        };
        let allowed = allowed.map(|name| format!("ALLOWED_HOSTS={name}"));
        ["HOST=0.0.0.0".to_owned(), "PORT=8080".to_owned()]
            .into_iter()
            .chain(allowed)
            .chain(
                needs
                    .variables
                    .iter()
                    .chain(&self.variables)
                    .map(|(name, value)| format!("{name}={value}")),
            )
            .collect()
    }

    fn bind_mounts(&self, needs: &Needs) -> Vec<Mount> {
        self.mounts
            .iter()
            .chain(&needs.mounts)
            .map(|mount| Mount {
                typ: Some(MountType::BIND),
                source: Some(mount.source.to_string_lossy().into_owned()),
                target: Some(mount.target.clone()),
                read_only: Some(!mount.writable),
                ..Mount::default()
            })
            .collect()
    }
}

/// Folders that lie in memory and count to its limit, each with its mount options.
fn in_memory(image: &ImageFacts, limits: &ContainerLimits) -> HashMap<String, String> {
    // The mode alone is not enough: where the folder is in the image, its mode wins.
    let owner = match image.user {
        Some((user, group)) => format!(",uid={user},gid={group}"),
        None => String::new(),
    };
    let writable = image.writable.iter().flatten();
    let mut folders: HashMap<String, String> = writable
        .map(|folder| (folder.clone(), format!("exec,mode=1777{owner}")))
        .collect();
    if let Some(bytes) = limits.world_bytes {
        folders.extend(ROOTS.map(|root| {
            let options = format!("exec,mode=0777{owner},size={bytes}");
            (root.to_owned(), options)
        }));
    }
    folders
}

fn port_bindings(reach: &Reach<'_>) -> Option<HashMap<String, Option<Vec<PortBinding>>>> {
    let address = match reach {
        Reach::Loopback => "127.0.0.1",
        Reach::Machine(_) => "0.0.0.0",
        Reach::OwnAddress => return None,
    };
    let free = PortBinding {
        host_ip: Some(address.to_owned()),
        host_port: Some("0".to_owned()),
    };
    Some(HashMap::from([(PORT.to_owned(), Some(vec![free]))]))
}

fn limited(limits: &ContainerLimits) -> HostConfig {
    let memory = limits
        .memory_bytes
        .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    HostConfig {
        memory,
        // No more in swap than in memory: what is over the limit ends, it does not crawl.
        memory_swap: memory,
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a number of processors in billionths fits by far"
        )]
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9) as i64),
        pids_limit: limits.pids.map(i64::from),
        ..HostConfig::default()
    }
}

/// The engine's own copy of the output is bounded; ours is in the trial's log.
fn log_config() -> HostConfigLogConfig {
    let sizes = [("max-size", "32m"), ("max-file", "2")];
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(
            sizes
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        ),
    }
}
