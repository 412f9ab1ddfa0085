//! Agents: the step loop, tools over MCP or in process, budgets, trajectory.
//!
//! [`run`] takes a model, tools, messages and the name of an agent, and gives back a
//! [`Trajectory`](formats::trajectory::Trajectory). Whoever wants to follow it passes an
//! [`Observer`]; [`EventLog`] is the one that writes `events.jsonl`. Agents are entries of
//! [`Agents`]; a program can add its own by implementing [`Agent`].
//!
//! The library reads no environment variables and sets up no logging.

mod checkpoint;
mod compaction;
mod driver;
mod events;
mod images;
mod input;
mod loop_agent;
mod rebuild;
mod registry;
mod run;
mod settings;
mod single_shot;
mod spans;
mod subagent;
mod toolbelt;
mod tools;

pub use checkpoint::Checkpoint;
pub use driver::run;
pub use events::{BetweenSteps, EventLog, NoObserver, Observer, Observers};
pub use images::{FetchLimits, ImageFetchError, ImageFetcher};
pub use input::{DEFAULT_LIMIT, RunInput};
pub use loop_agent::{AccountingMode, LoopAgent, LoopAgentConfig};
pub use rebuild::{read_events, rebuild};
pub use registry::{Agent, AgentConfigError, Agents, ResolvedAgent};
pub use run::{
    Answer, CallLimits, Concurrency, Run, RunContext, Shorten, Turn, TurnKind, Unusable,
    model_failure,
};
pub use settings::Seconds;
pub use single_shot::{SingleShot, SingleShotConfig};
pub use spans::GEN_AI_CONVENTIONS;
pub use subagent::{AgentTool, SUBAGENT_STEPS, Subagent};
pub use toolbelt::{ReactToolbeltAgent, ReactToolbeltConfig};
pub use tools::{
    FunctionTool, McpEndpoint, McpLimits, Tool, ToolContent, ToolOutput, ToolSources,
    shorten_output,
};
