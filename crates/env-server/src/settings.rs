//! What an environment is told when it starts, and its limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_gateway::GatewayOptions;

use crate::signing::RequestSigning;

/// The settings of an environment. Programs fill them in; this crate reads no variables.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address or host name to listen on. Default `127.0.0.1`.
    pub host: String,
    /// The port; 0 takes a free one. Default 8080.
    pub port: u16,
    /// Where the agent's files lie. Default: subsystem `filesystem` in `/filesystem`.
    pub filesystem: Subsystem,
    /// Where the application servers keep their state. Default: `.apps_data` in `/.apps_data`.
    pub apps_data: Subsystem,
    /// Host names besides the loopback ones under which browsers and MCP clients may reach this
    /// environment; `*` allows all.
    pub allowed_hosts: Vec<String>,
    /// A token that every request but `GET /health` and `GET /` has to carry. Default: none.
    pub auth_token: Option<AuthToken>,
    /// Limits of the routes under `/data`.
    pub data: DataLimits,
    /// Signatures that requests have to carry, but those to `/health`, `/`, `/mcp` and `/rest`.
    /// Default: none.
    pub signing: Option<Arc<RequestSigning>>,
    /// How long connecting to an application of `/rest` may take. Default 10 s.
    pub rest_connect: Duration,
    /// How long an application of `/rest` may send nothing. Default 300 s.
    pub rest_silence: Duration,
    /// Where snapshots go in S3, and how S3 is reached.
    pub s3: S3Settings,
    /// What changed on the machine.
    pub rootfs: RootfsSettings,
    /// What makes the world react while the agent works.
    pub coordinator: CoordinatorSettings,
    /// Bytes of a JSON body. Default 16 MiB.
    pub max_json_bytes: usize,
    /// How long requests and MCP calls in flight may go on after the stop was asked for. Default 1 s.
    pub shutdown_grace: Duration,
    /// Settings of the MCP gateway. Allowed hosts and the variables with the roots are added to
    /// them.
    pub gateway: GatewayOptions,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            filesystem: Subsystem::at_root(snapshot::FILESYSTEM),
            apps_data: Subsystem::at_root(snapshot::APPS_DATA),
            allowed_hosts: Vec::new(),
            auth_token: None,
            data: DataLimits::default(),
            signing: None,
            rest_connect: Duration::from_secs(10),
            rest_silence: Duration::from_secs(300),
            s3: S3Settings::default(),
            rootfs: RootfsSettings::default(),
            coordinator: CoordinatorSettings::default(),
            max_json_bytes: 16 << 20,
            shutdown_grace: Duration::from_secs(1),
            gateway: GatewayOptions::default(),
        }
    }
}

impl Settings {
    /// The subsystems as packing takes them.
    pub(crate) fn roots(&self) -> [(&str, &std::path::Path); 2] {
        [&self.filesystem, &self.apps_data]
            .map(|subsystem| (subsystem.name.as_str(), subsystem.root.as_path()))
    }
}

/// Which machine is captured, and the moment from which on (`spec/environment.md` §16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootfsSettings {
    /// The root of the machine. Default `/`.
    pub root: PathBuf,
    /// The file whose change time is the moment. Default `/run/archipelago/rootfs-baseline`.
    pub marker: PathBuf,
    /// Bytes of a layer, compressed. Default 20 GiB.
    pub max_layer_bytes: u64,
}

impl Default for RootfsSettings {
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
            marker: PathBuf::from("/run/archipelago/rootfs-baseline"),
            max_layer_bytes: 20 << 30,
        }
    }
}

/// Where the coordinator keeps its state, and its limits (`spec/environment.md` §17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorSettings {
    /// The directory of its state; `None` for `.coordinator` in the applications' directory.
    pub root: Option<PathBuf>,
    /// How long a snapshot waits for actions that are running. Default 300 s.
    pub drain: Duration,
    /// Events of one configuration. Default 1000.
    pub max_events: usize,
    /// Bytes of the arguments of one recorded call; longer ones are recorded as their length. Default
    /// 1 MiB.
    pub max_recorded_bytes: usize,
}

impl Default for CoordinatorSettings {
    fn default() -> Self {
        Self {
            root: None,
            drain: Duration::from_secs(300),
            max_events: 1000,
            max_recorded_bytes: 1 << 20,
        }
    }
}

/// How S3 is reached, and where snapshots go (`spec/environment.md` §13.5, §15, §20).
#[derive(Clone)]
pub struct S3Settings {
    /// The bucket of snapshots. Default `snapshots`.
    pub bucket: String,
    /// What their keys begin with. Default: nothing.
    pub prefix: String,
    /// The region unless a request names one. Default `us-west-2`.
    pub default_region: String,
    /// Whether buckets are part of the host name. Default: yes with AWS, no with another endpoint.
    pub virtual_hosts: Option<bool>,
    /// The standard variables of AWS (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, …) by name. They may
    /// hold secrets and never show in logs.
    variables: BTreeMap<String, String>,
    /// How often a request is tried again after a failure that may pass. Default 5.
    pub max_retries: usize,
    /// The wait before the first new try; it doubles each time. Default 300 ms.
    pub retry_backoff: Duration,
    /// How long a connection may take. Default 60 s.
    pub connect_timeout: Duration,
    /// How long one request may take at least, its body included. Default 300 s.
    pub request_timeout: Duration,
    /// Bytes per second below which a request is too slow, where that gives it more time. Default
    /// 5 MiB.
    pub min_throughput: f64,
    /// How often an upload tells in the log how far it is. Default 60 s.
    pub progress_interval: Duration,
}

impl S3Settings {
    /// Takes over the standard variables of AWS; others are ignored.
    pub fn take_variables(&mut self, variables: impl IntoIterator<Item = (String, String)>) {
        self.variables.extend(
            variables
                .into_iter()
                .filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty()),
        );
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The address of a service that is not AWS.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"]
            .into_iter()
            .find_map(|name| self.variables.get(name))
            .map(String::as_str)
    }
}

impl Default for S3Settings {
    fn default() -> Self {
        Self {
            bucket: "snapshots".to_owned(),
            prefix: String::new(),
            default_region: "us-west-2".to_owned(),
            virtual_hosts: None,
            variables: BTreeMap::new(),
            max_retries: 5,
            retry_backoff: Duration::from_millis(300),
            connect_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(300),
            min_throughput: 5.0 * 1024.0 * 1024.0,
            progress_interval: Duration::from_secs(60),
        }
    }
}

impl std::fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Settings")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("default_region", &self.default_region)
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}

/// One of the two directories of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subsystem {
    /// Its name in requests and archives.
    pub name: String,
    /// The directory; made at the start when it does not exist.
    pub root: PathBuf,
}

impl Subsystem {
    /// The subsystem in the directory of its name under `/`, as in the image of the reference.
    #[must_use]
    pub fn at_root(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            root: PathBuf::from("/").join(name),
        }
    }
}

/// Limits of the routes under `/data`.
#[derive(Debug, Clone)]
pub struct DataLimits {
    /// What an archive may ask for when it is unpacked.
    pub archive: snapshot::Limits,
    /// Bytes of one upload. Default 64 GiB.
    pub max_upload_bytes: u64,
    /// Bytes of a form field that is no file. Default 1 MiB.
    pub max_field_bytes: usize,
    /// How long a client may neither send nor take anything in the middle of a transfer.
    /// Default 300 s.
    pub transfer_stall: Duration,
    /// Uploads and downloads at the same time; one more is answered 503. Default 16.
    pub max_transfers: usize,
    /// How long a lifecycle hook may run that names no limit of its own. Default 3000 s.
    pub hook_timeout: Duration,
    /// Hooks of one request. Default 64.
    pub max_hooks: usize,
    /// Background jobs of each kind that are remembered; finished ones beyond are forgotten. Default
    /// 1000.
    pub max_jobs: usize,
}

impl Default for DataLimits {
    fn default() -> Self {
        Self {
            archive: snapshot::Limits::default(),
            max_upload_bytes: 64 << 30,
            max_field_bytes: 1 << 20,
            transfer_stall: Duration::from_secs(300),
            max_transfers: 16,
            hook_timeout: Duration::from_secs(3000),
            max_hooks: 64,
            max_jobs: 1000,
        }
    }
}

/// A bearer token. It never shows in logs.
#[derive(Clone)]
pub struct AuthToken(String);

impl AuthToken {
    /// A token; `None` for an empty text, which would protect nothing.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Option<Self> {
        Some(token.into())
            .filter(|token| !token.is_empty())
            .map(Self)
    }

    /// Whether `given` is this token, in a time that does not tell how much of it is right.
    pub(crate) fn is(&self, given: &str) -> bool {
        let (ours, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = ours
            .iter()
            .zip(given)
            .fold(0, |differing, (ours, given)| differing | (ours ^ given));
        ours.len() == given.len() && differing == 0
    }
}

impl std::fmt::Debug for AuthToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthToken([redacted])")
    }
}
