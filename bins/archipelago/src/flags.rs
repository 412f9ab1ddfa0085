//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The command under which this program is the environment.
pub(crate) const ENVIRONMENT: &str = "environment";

/// The name under which this program is the file server for worlds.
pub(crate) const FILESYSTEM_SERVER: &str = "filesystem-server";

/// Runs AI agents in worlds of files and MCP applications, and judges what they did.
///
/// Exit codes: 0 done, 1 the agent or the grade failed, 2 usage or configuration, 3 infrastructure, 130 cancelled.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run tasks: environment, agent, snapshot, grades
    Run(RunFlags),
    /// Grade the trials of a run again, without the model or the world
    Grade(GradeFlags),
    /// Measure how far a judge agrees with people, on cases that they have decided
    Calibrate(CalibrateFlags),
    /// Compare two states of a world: zip, tar.gz, tar or a folder
    Diff(DiffFlags),
    /// Explain what is wrong with a task folder
    Validate(ValidateFlags),
    /// Print the JSON Schema of a document; without a name, list the names
    Schema(SchemaFlags),
    /// Serve a checking stand-in for a model provider, to test a set-up without a key
    Stub(StubFlags),
    /// Be the environment, with the flags of `archipelago-env`
    #[command(name = ENVIRONMENT, disable_help_flag = true)]
    Environment(EnvironmentFlags),
}

#[derive(Debug, Args)]
pub(crate) struct EnvironmentFlags {
    /// Flags of `archipelago-env`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) flags: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// Task folders
    #[arg(required = true, value_name = "TASK")]
    pub(crate) tasks: Vec<PathBuf>,
    /// The run folder; default: `runs/<time>-<first task>`
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// `provider/model`, in place of the one that the task names
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// `provider/model` of the judge, in place of the one that the task names
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
    /// JSON file: the agent and its settings, in place of the task's
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
    /// Where environments run: `process`, or the URL of one that runs already
    #[arg(long, default_value = "process", value_name = "process|URL")]
    pub(crate) sandbox: String,
    /// Attempts per task
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "K")]
    pub(crate) attempts: u32,
    /// Trials at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    pub(crate) concurrency: u16,
    /// Go on with the run in `--output`: repeat what was interrupted or failed for other reasons than the model
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Keep the environments' folders to look into
    #[arg(long)]
    pub(crate) keep: bool,
    /// What goes to stdout: an account for people, or the summary as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct GradeFlags {
    /// A run folder, or the folder of one of its trials
    #[arg(value_name = "RUN|TRIAL")]
    pub(crate) folder: PathBuf,
    /// Which verifiers: those that ended in an error, or all
    #[arg(long, value_enum, default_value_t = Only::All)]
    pub(crate) only: Only,
    /// `provider/model` of the judge, in place of the one that the run used
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Only {
    All,
    Errors,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateFlags {
    /// JSON file: cases with labels; the judge is that of `grading_settings.json` beside it
    pub(crate) labels: PathBuf,
    /// `provider/model` of the judge, in place of the one in the settings
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
    /// How often the judge is asked about each case
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=25), value_name = "K")]
    pub(crate) votes: Option<u32>,
    /// Text, or JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct DiffFlags {
    /// The earlier state
    pub(crate) before: PathBuf,
    /// The later state
    pub(crate) after: PathBuf,
    /// Text, or `diff.json`
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateFlags {
    /// Task folders
    #[arg(required = true, value_name = "TASK")]
    pub(crate) tasks: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaFlags {
    /// Name of the document, such as `verifiers` or `trajectory`
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StubFlags {
    /// The interface to stand in for
    #[arg(value_enum)]
    pub(crate) provider: StubProvider,
    /// JSON file: what the model says, turn by turn
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// Loopback port; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

/// A provider with a stub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StubProvider {
    /// OpenAI's chat completions
    Openai,
    /// Anthropic's messages
    Anthropic,
}
