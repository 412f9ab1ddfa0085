//! The body of `POST /apps`, which is also `mcp_config.json` (`spec/environment.md` §5).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The MCP servers that a world offers, by name.
///
/// Unknown keys are ignored, as in the reference. Two configurations are the same when they are
/// equal as values: `null` and an absent key are one thing, the order of keys does not matter,
/// the order of servers does not either.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppsConfig {
    /// The servers in the order of the document.
    #[serde(rename = "mcpServers")]
    pub mcp_servers: Servers,
    /// Served names, or a server's own tool names, that may be listed and called.
    /// `null` or empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tool_names: Option<Vec<String>>,
    /// Settings of the coordinator (`spec/environment.md` §17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinator_config: Option<Value>,
}

/// Servers by name, in the order of the document. The order is kept, and does not count when two are
/// compared.
#[derive(Debug, Clone, Default)]
pub struct Servers(Vec<(String, ServerConfig)>);

impl PartialEq for Servers {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .all(|(name, server)| other.get(name) == Some(server))
    }
}

impl Servers {
    /// Name and configuration of each server, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &ServerConfig)> {
        self.0.iter().map(|(name, server)| (name.as_str(), server))
    }

    /// The names in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The configurations, to be changed in place.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut ServerConfig> {
        self.0.iter_mut().map(|(_, server)| server)
    }

    /// The server `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ServerConfig> {
        self.0
            .iter()
            .find_map(|(known, server)| (known == name).then_some(server))
    }

    /// Adds a server, or replaces the one of that name.
    pub fn insert(&mut self, name: impl Into<String>, server: ServerConfig) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = server,
            None => self.0.push((name, server)),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>> FromIterator<(N, ServerConfig)> for Servers {
    fn from_iter<I: IntoIterator<Item = (N, ServerConfig)>>(servers: I) -> Self {
        let mut all = Self::default();
        for (name, server) in servers {
            all.insert(name, server);
        }
        all
    }
}

impl Serialize for Servers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Servers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Servers;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of servers by name")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Servers, A::Error> {
                let mut servers = Servers::default();
                while let Some((name, server)) = map.next_entry::<String, ServerConfig>()? {
                    servers.insert(name, server);
                }
                Ok(servers)
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl JsonSchema for Servers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Servers".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <BTreeMap<String, ServerConfig>>::json_schema(generator)
    }
}

/// How one MCP server is started or reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerConfig {
    /// `stdio`, `http`, `streamable-http` or `sse` (MCP 2024-11-05) for servers that serve tools.
    pub transport: String,
    /// The program of a `stdio` server; not split by a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Variables on top of the few that a server inherits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Its working directory; relative to that of the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The address of a remote server, used exactly as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Extra request headers to a remote server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// A bearer token for a remote server. `"oauth"` is refused: it needs a person at a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Value>,
    /// Whether its tools are part of the aggregated endpoint; `false` leaves it to `/rest/<name>`.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub serve_mcp_tools: bool,
    /// Vendor setting of the REST proxy (`spec/environment.md` §10.3).
    #[serde(default, skip_serializing_if = "is_false")]
    pub openapi_mcp_filter: bool,
    /// Vendor setting of the REST proxy (`spec/environment.md` §10.3).
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub exposes_mcp: bool,
    /// Keeps one backend session for all calls. Always so here; accepted for compatibility.
    #[serde(default, skip_serializing_if = "is_false")]
    pub session_affinity: bool,
    /// `shared` (default): one server process for all client sessions. `session`: one for each.
    #[serde(default, skip_serializing_if = "Isolation::is_shared")]
    pub isolation: Isolation,
    /// What happens when this server cannot start.
    #[serde(default, skip_serializing_if = "OnFailure::is_refuse")]
    pub on_failure: OnFailure,
}

/// Who shares a server process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// All client sessions use one process, so that state lasts across them.
    #[default]
    Shared,
    /// Each client session gets its own process.
    Session,
}

impl Isolation {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature serde asks for"
    )]
    const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared)
    }
}

/// What a configuration does when one of its servers cannot start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The whole configuration is refused; the previous one keeps serving.
    #[default]
    Refuse,
    /// The server is marked as failed; the others serve.
    Skip,
}

impl OnFailure {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature serde asks for"
    )]
    const fn is_refuse(&self) -> bool {
        matches!(self, Self::Refuse)
    }
}

const fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_true(value: &bool) -> bool {
    *value
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The answer of `POST /apps` when the configuration serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AppsApplied {
    /// All server names, in the order of the request.
    pub servers: Vec<String>,
    /// How long the call took, in milliseconds; exactly 0 when nothing had to change.
    pub duration_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> AppsConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn null_and_absent_are_equal_and_unknown_keys_do_not_count() {
        let short = parse(r#"{"mcpServers": {"a": {"transport": "stdio", "command": "x"}}}"#);
        let long = parse(
            r#"{"mcpServers": {"a": {"command": "x", "transport": "stdio", "args": null,
                "serve_mcp_tools": true, "timeout": 5}}, "allowed_tool_names": null}"#,
        );
        assert_eq!(short, long);
        let empty_list = parse(
            r#"{"mcpServers": {"a": {"transport": "stdio", "command": "x"}}, "allowed_tool_names": []}"#,
        );
        assert_ne!(short, empty_list);
    }

    #[test]
    fn servers_keep_their_order() {
        let config = parse(
            r#"{"mcpServers": {"z": {"transport": "http", "url": "u"}, "a": {"transport": "stdio"}}}"#,
        );
        assert_eq!(config.mcp_servers.names().collect::<Vec<_>>(), ["z", "a"]);
        let turned = parse(
            r#"{"mcpServers": {"a": {"transport": "stdio"}, "z": {"transport": "http", "url": "u"}}}"#,
        );
        assert_eq!(config, turned);
        for other in [
            r#"{"mcpServers": {"z": {"transport": "http", "url": "u"}}}"#,
            r#"{"mcpServers": {"z": {"transport": "http", "url": "v"}, "a": {"transport": "stdio"}}}"#,
            r#"{"mcpServers": {"z": {"transport": "http", "url": "u"}, "b": {"transport": "stdio"}}}"#,
        ] {
            assert_ne!(config, parse(other), "{other}");
        }
    }

    #[test]
    fn a_value_of_env_that_is_no_string_is_refused() {
        let error = serde_json::from_str::<AppsConfig>(
            r#"{"mcpServers": {"a": {"transport": "stdio", "env": {"N": 1}}}}"#,
        )
        .unwrap_err();
        assert!(error.to_string().contains("expected a string"), "{error}");
    }
}
