//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::{OsStringValueParser, TypedValueParser as _};

/// Runs one agent on one task against a running MCP gateway and writes its trajectory.
///
/// Exit codes: 0 the agent completed, 1 it failed, 2 flags or files are wrong, 3 infrastructure, 130 cancelled. The
/// reference ends with 0 whenever a trajectory was produced and with 1 for bad files; `--reference-exit-codes` does
/// the same. The account of the run goes to stderr, where the reference writes to stdout.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Flags {
    /// Id of the trajectory, for logs and headers
    #[arg(long)]
    pub(crate) trajectory_id: String,
    /// JSON file: array of chat messages
    #[arg(long, value_name = "FILE")]
    pub(crate) initial_messages: PathBuf,
    /// URL of the gateway, with its trailing slash
    #[arg(long, value_name = "URL")]
    pub(crate) mcp_gateway_url: String,
    /// Bearer token for the gateway; better given in `MCP_GATEWAY_AUTH_TOKEN`, since flags are visible to all
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) mcp_gateway_auth_token: String,
    /// Actor id for the gateway, wins over the token; else `MCP_GATEWAY_ACTOR_ID`
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(crate) mcp_gateway_actor_id: String,
    /// JSON file: the agent and its settings
    #[arg(long, value_name = "FILE")]
    pub(crate) agent_config: PathBuf,
    /// The model, `provider/model`
    #[arg(long, value_name = "MODEL")]
    pub(crate) orchestrator_model: String,
    /// JSON file: object with further parameters of every model call
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) orchestrator_extra_args: Option<PathBuf>,
    /// JSON file: structured output of a parent trajectory
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) parent_trajectory_output: Option<PathBuf>,
    /// JSON file: object, metadata of the run
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) custom_args: Option<PathBuf>,
    /// JSON file: object, custom fields of the task
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) task_custom_fields: Option<PathBuf>,
    /// JSON file: object, for agents that wrap another agent
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) inner_agent_config: Option<PathBuf>,
    /// Where the trajectory is written; without it the run leaves nothing behind
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) output: Option<PathBuf>,
    /// Keep pictures and long texts of the trajectory in files of a folder `blobs` beside `--output`
    #[arg(long, requires = "output")]
    pub(crate) blobs: bool,
    /// Where the events are written, one JSON object per line, while they happen
    #[arg(long, value_name = "FILE", value_parser = path())]
    pub(crate) events: Option<PathBuf>,
    /// Go on with the run whose events are in `--events`, from the step in flight; where there are none, begin
    #[arg(long = "continue", requires = "events")]
    pub(crate) go_on: bool,
    /// JSON file: a finished trajectory whose conversation this run goes on with; the initial messages follow it
    #[arg(long, value_name = "FILE", value_parser = path(), conflicts_with = "go_on")]
    pub(crate) parent_trajectory: Option<PathBuf>,
    /// Record every exchange with the model in this folder, without secrets; `replay/DIR` plays it
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Keep answers of the model in this folder, and do not ask again for what is there
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// US dollars that the run may cost; a call whose worst case goes beyond is not sent
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) max_cost: Option<f64>,
    /// Tokens of requests and replies that the run may take; a call whose worst case goes beyond is not sent
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// End with the exit codes of the reference
    #[arg(long)]
    pub(crate) reference_exit_codes: bool,
}

/// A number of dollars.
fn amount(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|amount| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| "it must be a number of at least 0".to_owned())
}

/// A path that may be empty, which counts as not given.
fn path() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Flags {
    /// The flags with empty paths left out, as scripts of the reference give them.
    pub(crate) fn without_empty_paths(mut self) -> Self {
        for path in [
            &mut self.orchestrator_extra_args,
            &mut self.parent_trajectory_output,
            &mut self.custom_args,
            &mut self.task_custom_fields,
            &mut self.inner_agent_config,
            &mut self.output,
            &mut self.events,
            &mut self.parent_trajectory,
        ] {
            path.take_if(|path| path.as_os_str().is_empty());
        }
        self
    }
}
