//! What an environment is told when it starts, and its limits.

use std::path::PathBuf;
use std::time::Duration;

use mcp_gateway::GatewayOptions;

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
            max_json_bytes: 16 << 20,
            shutdown_grace: Duration::from_secs(1),
            gateway: GatewayOptions::default(),
        }
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
