//! All tools of a run under their names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use formats::Object;
use formats::chat::ToolDefinition;
use formats::owner::{Failure, Owner};
use serde_json::Value;

use super::error::CallError;
use super::mcp::McpConnection;
use super::output::ToolOutput;
use super::{Tool, ToolSources, schema};
use crate::run::Concurrency;

/// The connected tools of a run.
pub(crate) struct Toolbox {
    definitions: Arc<[ToolDefinition]>,
    routes: HashMap<String, Route>,
    connections: Vec<McpConnection>,
    tools: Vec<Arc<dyn Tool>>,
    /// Which calls are made side by side, and of which tools they are in any case.
    concurrency: Concurrency,
    concurrent: HashSet<String>,
    /// What was odd about the lists of tools, for people.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Connection(usize),
    Tool(usize),
}

struct Route {
    place: Place,
    read_only: bool,
}

impl Toolbox {
    /// Connects to every endpoint and lists all tools.
    pub(crate) async fn open(sources: ToolSources) -> Result<Self, Failure> {
        let mut toolbox = Self {
            definitions: Arc::from([]),
            routes: HashMap::new(),
            connections: Vec::new(),
            tools: Vec::new(),
            concurrency: Concurrency::default(),
            concurrent: HashSet::new(),
            warnings: Vec::new(),
        };
        let mut definitions = Vec::new();
        for endpoint in sources.endpoints {
            let connection = McpConnection::open(endpoint).await?;
            let place = Place::Connection(toolbox.connections.len());
            let listed = connection.list_tools().await;
            toolbox.connections.push(connection);
            for tool in listed? {
                let read_only = tool
                    .annotations
                    .as_ref()
                    .and_then(|hints| hints.read_only_hint)
                    .unwrap_or(false);
                let definition = ToolDefinition::new(
                    tool.name.clone(),
                    tool.description.as_deref().unwrap_or_default(),
                    schema::normalised(&tool.input_schema),
                );
                toolbox.add(definition, Route { place, read_only }, &mut definitions)?;
            }
        }
        for tool in sources.tools {
            let mut definition = tool.definition();
            if let Value::Object(parameters) = &definition.function.parameters {
                definition.function.parameters = schema::normalised(parameters);
            }
            let place = Place::Tool(toolbox.tools.len());
            let read_only = tool.is_read_only();
            toolbox.tools.push(tool);
            let route = Route { place, read_only };
            toolbox.add(definition, route, &mut definitions)?;
        }
        toolbox.definitions = definitions.into();
        Ok(toolbox)
    }

    /// Two tools of one name: within one source the first one counts, since the source itself
    /// decides which one it means; across sources nobody can know.
    fn add(
        &mut self,
        mut definition: ToolDefinition,
        route: Route,
        definitions: &mut Vec<ToolDefinition>,
    ) -> Result<(), Failure> {
        let name = &definition.function.name;
        match self.routes.get(name) {
            Some(known) if known.place == route.place => {
                self.warnings.push(format!(
                    "the tool `{name}` is listed twice; the first one counts"
                ));
                Ok(())
            }
            Some(known) => Err(Failure::new(
                Owner::Configuration,
                "ambiguous_tool",
                format!(
                    "the tool `{name}` is offered by {} and by {}",
                    self.source_name(known.place),
                    self.source_name(route.place)
                ),
            )),
            None => {
                self.routes.insert(name.clone(), route);
                definition
                    .function
                    .extra
                    .insert("strict".to_owned(), Value::Bool(false));
                definitions.push(definition);
                Ok(())
            }
        }
    }

    fn source_name(&self, place: Place) -> String {
        match place {
            Place::Connection(index) => self
                .connections
                .get(index)
                .map_or_else(String::new, |connection| connection.url().to_owned()),
            Place::Tool(_) => "a function of this program".to_owned(),
        }
    }

    /// The tools as the model is told of them, in the order of the lists.
    pub(crate) fn definitions(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.definitions)
    }

    /// Whether there is a tool of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.routes.contains_key(name)
    }

    pub(crate) fn set_concurrency(&mut self, which: Concurrency, tools: &[String]) {
        self.concurrency = which;
        self.concurrent = tools.iter().cloned().collect();
    }

    /// Whether a call of the tool may be made beside others.
    pub(crate) fn is_concurrent(&self, name: &str) -> bool {
        self.concurrent.contains(name)
            || match self.concurrency {
                Concurrency::None => false,
                Concurrency::ReadOnly => self.routes.get(name).is_some_and(|route| route.read_only),
                Concurrency::All => true,
            }
    }

    /// Whether a call of which it is not known how far it came can be made again: the tool says that
    /// it only reads, or it is none of the tools here but one of the agent's own.
    pub(crate) fn can_repeat(&self, name: &str) -> bool {
        self.routes.get(name).is_none_or(|route| route.read_only)
    }

    /// Where a call goes. A name that was not listed goes to the only endpoint, which may know
    /// more tools than it listed; with several sources there is no telling.
    fn place_of(&self, name: &str) -> Option<Place> {
        match self.routes.get(name) {
            Some(route) => Some(route.place),
            None if self.connections.len() == 1 => Some(Place::Connection(0)),
            None => None,
        }
    }

    /// Calls a tool once.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Object,
        limit: Duration,
        grace: Duration,
    ) -> Result<ToolOutput, CallError> {
        match self.place_of(name) {
            Some(Place::Connection(index)) => match self.connections.get(index) {
                Some(connection) => connection.call(name, arguments, limit, grace).await,
                None => Err(unknown(name)),
            },
            Some(Place::Tool(index)) => match self.tools.get(index) {
                Some(tool) => match tokio::time::timeout(limit, tool.call(arguments)).await {
                    Ok(Ok(output)) => Ok(output),
                    Ok(Err(text)) => Ok(ToolOutput::error(text)),
                    Err(_) => Err(CallError::TimedOut(limit)),
                },
                None => Err(unknown(name)),
            },
            None => Err(unknown(name)),
        }
    }

    /// Opens a new session with the endpoint of the tool `name`, unless that was done since a call
    /// was begun at `since`.
    pub(crate) async fn reconnect(&mut self, name: &str, since: Instant) -> Result<(), Failure> {
        match self.place_of(name) {
            Some(Place::Connection(index)) => match self.connections.get_mut(index) {
                Some(connection) => connection.reconnect(since).await,
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Ends all sessions.
    pub(crate) async fn close(self) {
        futures::future::join_all(self.connections.into_iter().map(McpConnection::close)).await;
    }
}

fn unknown(name: &str) -> CallError {
    CallError::Rejected(format!("there is no tool `{name}`"))
}
