//! What a gateway shows of itself (`GET /apps`).

use formats::apps::AppsConfig;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The configuration that serves, and how its servers are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AppsState {
    /// The configuration with the values of `env`, `headers` and `auth` replaced; `null` before the
    /// first one.
    pub configuration: Option<AppsConfig>,
    /// All servers in the order of the configuration.
    pub servers: Vec<ServerState>,
    /// How many client sessions there are.
    pub sessions: usize,
}

/// One server of the configuration.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerState {
    /// Its name.
    pub name: String,
    /// Its transport, as configured.
    pub transport: String,
    /// Where it is in its life.
    pub state: ServerPhase,
    /// How many tools it has; `null` while they are not known.
    pub tools: Option<usize>,
    /// Why it failed or stopped, or the last problem with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of its process, which is also that of the process group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// How many times it was started under this configuration.
    pub starts: u32,
    /// The MCP revision agreed with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// What it says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Value>,
    /// Of a server with `"isolation": "session"`: that of each session that has used it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionServerState>,
}

/// The server that one session has for itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionServerState {
    /// The first eight letters of the session's id: the whole is a secret of its client.
    pub session: String,
    /// Where it is in its life.
    pub state: ServerPhase,
    /// Why it failed or stopped, or the last problem with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of its process, which is also that of the process group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// How many times it was started for this session.
    pub starts: u32,
}

impl ServerState {
    pub(crate) fn not_served(name: &str, transport: &str) -> Self {
        Self {
            name: name.to_owned(),
            transport: transport.to_owned(),
            state: ServerPhase::NotServed,
            tools: None,
            error: None,
            process_id: None,
            starts: 0,
            protocol_version: None,
            server_info: None,
            sessions: Vec::new(),
        }
    }

    /// The same as the server of one session.
    pub(crate) fn of_session(self, id: &str) -> SessionServerState {
        SessionServerState {
            session: id.chars().take(8).collect(),
            state: self.state,
            error: self.error,
            process_id: self.process_id,
            starts: self.starts,
        }
    }
}

/// Where a server is in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerPhase {
    /// Not started yet.
    #[default]
    Starting,
    /// Initialized and serving.
    Ready,
    /// It could not start.
    Failed,
    /// It ended; the next call starts it again.
    Stopped,
    /// Left out of the endpoint (`serve_mcp_tools: false`).
    NotServed,
}

/// The configuration without its secrets.
pub(crate) fn redacted(config: &AppsConfig) -> AppsConfig {
    const HIDDEN: &str = "[redacted]";
    let mut config = config.clone();
    for server in config.mcp_servers.values_mut() {
        for values in [&mut server.env, &mut server.headers] {
            for value in values.iter_mut().flat_map(|map| map.values_mut()) {
                HIDDEN.clone_into(value);
            }
        }
        if server.auth.is_some() {
            server.auth = Some(HIDDEN.into());
        }
    }
    // Its shape is not ours to know (it can hold keys of coworkers' models).
    if config.coordinator_config.is_some() {
        config.coordinator_config = Some(HIDDEN.into());
    }
    config
}
