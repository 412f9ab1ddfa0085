//! From flags to a trajectory.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_core::{
    Agents, Checkpoint, DEFAULT_LIMIT, EventLog, McpEndpoint, Observer, Observers, RunInput,
    ToolSources,
};
use formats::Object;
use formats::agent::AgentConfig;
use formats::blobs;
use formats::document::{self, DocumentError};
use formats::event::Event;
use formats::owner::Owner;
use formats::task::InitialMessages;
use formats::trajectory::{AgentStatus, Trajectory};
use llm_client::{Budget, BudgetLimits, Models};
use program::{Refused, Variables};
use report::text::{Steps, Style};
use tokio_util::sync::CancellationToken;

use crate::flags::Flags;
use crate::log_file::LogFile;

/// Log sinks of the reference that this version does not have. Asking for one is answered, not
/// ignored.
const SINKS: [&str; 4] = [
    "REDIS_LOGGING",
    "DATADOG_LOGGING",
    "API_LOGGING",
    "S3_LOGGING",
];

/// Runs the agent and returns the exit code.
pub(crate) async fn run(flags: &Flags) -> ExitCode {
    match Box::pin(attempt(flags)).await {
        Ok(trajectory) => end(&trajectory, flags.reference_exit_codes),
        Err(refused) => refused.tell(flags.reference_exit_codes),
    }
}

async fn attempt(flags: &Flags) -> Result<Trajectory, Refused> {
    let variables = Variables::load()?;
    let json = variables.is_deployed();
    program::start_logs("warn", json);
    if let Some(output) = &flags.output {
        // What an earlier run left must not be taken for the result of this one.
        remove_stale(output)?;
    }
    let input = input(flags, &variables)?;
    let limit = time_limit(&variables)?;
    for sink in SINKS {
        if variables.get(sink).is_some_and(|value| is_true(&value)) {
            program::say(format_args!(
                "warning: `{sink}` is not available in this version; `--events FILE` keeps the events"
            ));
        }
    }
    let log_file = LogFile::open(&variables)?;
    let checkpoint = match &flags.events {
        Some(events) if flags.go_on => read_checkpoint(events)?,
        _ => None,
    };
    let log = open_log(flags, checkpoint.is_some())?;
    let mut observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Account::new(json))];
    observers.extend(log.iter().map(|log| Arc::clone(log) as Arc<dyn Observer>));
    observers.extend(log_file.map(|file| Arc::new(file) as Arc<dyn Observer>));
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let input = RunInput {
        cancel,
        limit,
        observer: Arc::new(Observers(observers)),
        ..input
    };
    let input = match checkpoint {
        Some(checkpoint) => input.continue_from(checkpoint),
        None => input,
    };
    let trajectory = agent_core::run(&Agents::builtin(), input)
        .await
        .map_err(|error| {
            Refused::configuration(format_args!(
                "agent configuration `{}`: {error}",
                flags.agent_config.display()
            ))
        })?;
    if let Some(output) = &flags.output {
        match flags.blobs {
            true => blobs::write_trajectory(output, trajectory.clone())?,
            false => document::write("trajectory", output, &trajectory)?,
        }
    }
    if let Some(log) = log {
        log.finish().map_err(|error| {
            Refused::infrastructure(format!("cannot write the events: {error}"))
        })?;
    }
    Ok(trajectory)
}

/// Reads every file and checks the model's name and credentials.
fn input(flags: &Flags, variables: &Variables) -> Result<RunInput, Refused> {
    let messages: InitialMessages = document::read("initial messages", &flags.initial_messages)?;
    let config: AgentConfig = document::read("agent configuration", &flags.agent_config)?;
    let extra_args = object("extra arguments", flags.orchestrator_extra_args.as_deref())?;
    let model = models(flags, variables)?
        .resolve(
            &flags.orchestrator_model,
            extra_args.as_ref().unwrap_or(&Object::new()),
        )
        .map_err(Refused::configuration)?;
    let given = |flag: &str, variable: &str| {
        Some(flag.to_owned())
            .filter(|value| !value.is_empty())
            .or_else(|| variables.get(variable))
    };
    let endpoint = McpEndpoint {
        auth_token: given(&flags.mcp_gateway_auth_token, "MCP_GATEWAY_AUTH_TOKEN"),
        actor_id: given(&flags.mcp_gateway_actor_id, "MCP_GATEWAY_ACTOR_ID"),
        ..McpEndpoint::new(&flags.mcp_gateway_url)
    };
    let input = RunInput {
        trajectory_id: flags.trajectory_id.clone(),
        initial_messages: messages,
        extra_args: extra_args.unwrap_or_default(),
        tools: ToolSources::new().with_endpoint(endpoint),
        config,
        parent_trajectory_output: object(
            "parent trajectory output",
            flags.parent_trajectory_output.as_deref(),
        )?,
        custom_args: object("custom arguments", flags.custom_args.as_deref())?,
        task_custom_fields: object("task custom fields", flags.task_custom_fields.as_deref())?,
        inner_agent_config: object(
            "inner agent configuration",
            flags.inner_agent_config.as_deref(),
        )?,
        ..RunInput::new(model)
    };
    Ok(match &flags.parent_trajectory {
        Some(path) => input.after(blobs::read_trajectory(path)?),
        None => input,
    })
}

/// The models, and what the flags make of their exchanges.
fn models(flags: &Flags, variables: &Variables) -> Result<Models, Refused> {
    let models = Models::from_variables(|name| variables.get(name))
        .and_then(|models| models.with_folders(flags.record.as_deref(), flags.cache.as_deref()))
        .map_err(|error| Refused::new(error.owner(), error))?;
    let limits = BudgetLimits {
        cost_usd: flags.max_cost,
        tokens: flags.max_tokens,
    };
    Ok(if limits.is_unlimited() {
        models
    } else {
        models.with_budget(Budget::new("run", limits))
    })
}

/// The object in an optional file; `null` counts as an absent object.
fn object(what: &'static str, path: Option<&Path>) -> Result<Option<Object>, DocumentError> {
    match path {
        Some(path) => document::read(what, path),
        None => Ok(None),
    }
}

/// How far the run came whose events are at `path`, if it began.
fn read_checkpoint(path: &Path) -> Result<Option<Checkpoint>, Refused> {
    match agent_core::read_events(path) {
        Ok(events) => Ok(Checkpoint::from_events(&events)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Refused::configuration(format_args!(
            "cannot continue from events `{}`: {error}",
            path.display()
        ))),
    }
}

fn open_log(flags: &Flags, append: bool) -> Result<Option<Arc<EventLog>>, Refused> {
    let Some(path) = &flags.events else {
        return Ok(None);
    };
    let opened = match append {
        true => EventLog::append(path),
        false => EventLog::create(path),
    };
    match opened {
        Ok(log) => Ok(Some(Arc::new(log))),
        Err(error) => Err(Refused::infrastructure(format!(
            "cannot write events `{}`: {error}",
            path.display()
        ))),
    }
}

fn remove_stale(output: &Path) -> Result<(), Refused> {
    match std::fs::remove_file(output) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Refused::configuration(
            format_args!("cannot replace output `{}`: {error}", output.display()),
        )),
        _ => Ok(()),
    }
}

/// `AGENT_TIMEOUT_SECONDS`: the limit around the whole run.
fn time_limit(variables: &Variables) -> Result<Duration, Refused> {
    let Some(text) = variables.get("AGENT_TIMEOUT_SECONDS") else {
        return Ok(DEFAULT_LIMIT);
    };
    text.trim()
        .parse::<f64>()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|limit| !limit.is_zero())
        .ok_or_else(|| {
            Refused::configuration(format_args!(
                "`AGENT_TIMEOUT_SECONDS` must be a positive number of seconds, got `{text}`"
            ))
        })
}

pub(crate) fn is_true(value: &str) -> bool {
    matches!(
        value.to_ascii_lowercase().as_str(),
        "1" | "true" | "yes" | "on"
    )
}

/// Tells how the run ended and returns the exit code.
fn end(trajectory: &Trajectory, reference_codes: bool) -> ExitCode {
    let code = match &trajectory.error {
        None if trajectory.status == AgentStatus::Completed => ExitCode::SUCCESS,
        None => program::fail(
            Owner::Model,
            format_args!("the run ended {}", trajectory.status),
        ),
        Some(failure) => program::fail(
            failure.owner,
            format_args!(
                "the run ended {} ({}): {failure}",
                trajectory.status, failure.owner
            ),
        ),
    };
    if reference_codes {
        ExitCode::SUCCESS
    } else {
        code
    }
}

/// Tells the run on stderr while it goes on.
struct Account {
    json: bool,
    steps: Mutex<Steps>,
}

impl Account {
    fn new(json: bool) -> Self {
        Self {
            json,
            steps: Mutex::new(Steps::new(Style::default())),
        }
    }
}

impl Observer for Account {
    fn event(&self, event: &Event) {
        if self.json {
            if let Ok(line) = serde_json::to_string(event) {
                program::say(line);
            }
            return;
        }
        let line = self
            .steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .line(event);
        if let Some(line) = line {
            program::say(line);
        }
    }
}
