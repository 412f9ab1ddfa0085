//! The command line.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use testkit::stub::{Fault, Turn};

use crate::grading_flags::GradingFlags;

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
    Run(Box<RunFlags>),
    /// Run the tasks of a recorded run again, with what its models said then, and compare
    Replay(ReplayFlags),
    /// Grade the trials of a run again, without the model or the world
    Grade(GradeFlags),
    /// Measure how far a judge agrees with people, on cases that they have decided
    Calibrate(CalibrateFlags),
    /// Compare two states of a world: zip, tar.gz, tar or a folder
    Diff(DiffFlags),
    /// Explain what is wrong with a task folder
    Validate(ValidateFlags),
    /// Print the JSON Schema of a document, or of the settings of an agent; without a name, list the names
    Schema(SchemaFlags),
    /// Build the images of the environment, and list them
    #[command(subcommand)]
    Image(ImageCommand),
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
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    /// Attempts per task
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "K")]
    pub(crate) attempts: u32,
    /// Trials at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    pub(crate) concurrency: u16,
    /// Go on with the run in `--output`: repeat what was interrupted or failed for other reasons than the model
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Save the world every STEPS steps of an agent, so that `--resume` goes on from there with a trial that was
    /// interrupted; otherwise it begins anew
    #[arg(long, value_name = "STEPS")]
    pub(crate) checkpoint: Option<NonZeroU32>,
    /// Keep pictures and long texts of each `trajectory.json` in files of a folder `blobs` beside it
    #[arg(long)]
    pub(crate) blobs: bool,
    #[command(flatten)]
    pub(crate) models: ModelFlags,
    #[command(flatten)]
    pub(crate) budget: BudgetFlags,
    #[command(flatten)]
    pub(crate) grading: GradingFlags,
    /// What goes to stdout: an account for people, or the summary as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// Where environments run.
#[derive(Debug, Args)]
pub(crate) struct SandboxFlags {
    /// Where environments run: `process`, `docker`, or the URL of one that runs already
    #[arg(long, default_value = "process", value_name = "process|docker|URL")]
    pub(crate) sandbox: String,
    /// Keep the environments' folders or containers to look into
    #[arg(long)]
    pub(crate) keep: bool,
    /// With `--sandbox process`: whether environments get a view of this machine of their own, by bubblewrap;
    /// default: `auto`, where it is installed
    #[arg(long, value_enum, value_name = "auto|bubblewrap|none")]
    pub(crate) isolation: Option<IsolationFlag>,
    #[command(flatten)]
    pub(crate) container: ContainerFlags,
}

/// What becomes of the exchanges with models.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Exchanges with models")]
pub(crate) struct ModelFlags {
    /// Record every exchange with a model in this folder, without secrets
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Keep answers of models in this folder, and do not ask again for what is there
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

/// What models may cost. A call whose worst case goes beyond is not sent.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Budgets (crossing one ends trials with exit code 2)")]
pub(crate) struct BudgetFlags {
    /// US dollars that agents and judges of all trials may cost
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) max_cost: Option<f64>,
    /// US dollars that agent and judge of each trial may cost
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) max_cost_per_trial: Option<f64>,
    /// Tokens of requests and replies of all trials together
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Tokens of requests and replies of each trial
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens_per_trial: Option<u64>,
}

/// A number of dollars.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|amount| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| "it must be a number of at least 0".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// The folder of a run that was made with `--record`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// The recording, in place of the one that the run names: a folder, or one file of it
    #[arg(long, value_name = "PATH")]
    pub(crate) recording: Option<PathBuf>,
    /// The new run's folder; default: `<RUN>-replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxFlags,
    /// Trials at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), value_name = "N")]
    pub(crate) concurrency: u16,
    /// What goes to stdout: an account for people, or the summary as JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What `--sandbox docker` starts. The engine is the one that the variable `DOCKER_HOST` names.
#[derive(Debug, Args, Default, PartialEq)]
#[command(next_help_heading = "With `--sandbox docker`")]
pub(crate) struct ContainerFlags {
    /// Image of the environment; default: the task's, else `archipelago-env`
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Memory of one container, such as `512m`; default: the task's, else `4g`
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) memory: Option<u64>,
    /// Processors of one container, such as `1.5`; default: the task's, else all
    #[arg(long, value_name = "N", value_parser = processors)]
    pub(crate) cpus: Option<f64>,
    /// Processes and threads of one container; default: the task's, else 2048
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) pids: Option<u32>,
    /// Keep each root of the world in memory, with this size, such as `256m`; default: on disk, without a limit
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) world_size: Option<u64>,
    /// Whether containers reach the world outside; default: the task's, else `on`
    #[arg(long, value_enum, value_name = "on|off")]
    pub(crate) network: Option<Switch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationFlag {
    /// Where bubblewrap is installed and works
    Auto,
    /// Or the run fails
    Bubblewrap,
    /// Only temporary roots
    None,
}

/// A number of bytes, with `k`, `m` or `g` for powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "it must be a number of bytes, such as `512m` or `4g`".to_owned())
}

fn processors(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|cpus| (0.01..=4096.0).contains(cpus))
        .ok_or_else(|| "it must be a number from 0.01 to 4096".to_owned())
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
    #[command(flatten)]
    pub(crate) models: ModelFlags,
    #[command(flatten)]
    pub(crate) grading: GradingFlags,
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
    /// A state that is known to be right, as an archive or a folder: judge the task's verifiers on it
    #[arg(long, value_name = "PATH")]
    pub(crate) golden_snapshot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaFlags {
    /// Name of the document or agent, such as `verifiers`, `trajectory` or `loop_agent`, or of settings of
    /// grading: `eval/ID`, `eval-config/ID`, `scoring/ID`
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build an image from the sources of this repository
    Build(ImageBuildFlags),
    /// List the images that were built
    List,
}

#[derive(Debug, Args)]
pub(crate) struct ImageBuildFlags {
    /// The environment alone, or with Python, Node and office tools for the servers of worlds
    #[arg(value_enum, default_value_t = ImageKind::Environment)]
    pub(crate) kind: ImageKind,
    /// Name of the image; default: `archipelago-env` or `archipelago-env-worlds`
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    /// The root of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) context: PathBuf,
    /// A build argument of the Dockerfile; may be repeated
    #[arg(long = "build-arg", value_name = "NAME=VALUE", value_parser = named_value)]
    pub(crate) arguments: Vec<(String, String)>,
    /// Network of the build's steps, such as `host`; default: the engine's
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImageKind {
    Environment,
    Worlds,
}

fn named_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must be of the form `NAME=VALUE`".to_owned()),
    }
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
    /// What goes wrong first, one request each: `drop`, `stall`, `half-body`, `malformed-json`, `midway`, or a
    /// status with headers, such as `429,retry-after=2` or `529`; may be repeated
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault)]
    pub(crate) faults: Vec<Turn>,
}

/// A turn that goes wrong: the name of a fault or a status, and headers.
fn fault(text: &str) -> Result<Turn, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let mut turn = match name {
        "drop" => Turn::faulty(Fault::Drop),
        "stall" => Turn::faulty(Fault::Stall),
        "half-body" => Turn::says("Only half of this is sent.").with_fault(Fault::HalfBody),
        "malformed-json" => Turn::faulty(Fault::MalformedJson),
        "midway" => Turn::says("This breaks off.").with_fault(Fault::Midway),
        status => match status.parse() {
            Ok(status @ 300..=599) => Turn::fails(status),
            _ => {
                return Err(
                    "it must be `drop`, `stall`, `half-body`, `malformed-json`, `midway` or a status \
                     from 300 to 599"
                        .to_owned(),
                );
            }
        },
    };
    for header in parts {
        let (name, value) = header
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("the header `{header}` must be of the form `NAME=VALUE`"))?;
        turn = turn.header(name.trim(), value.trim());
    }
    Ok(turn)
}

/// A provider with a stub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StubProvider {
    /// OpenAI's chat completions and responses
    Openai,
    /// OpenAI's models at Azure's addresses
    Azure,
    /// Anthropic's messages
    Anthropic,
    /// Google's generateContent
    Gemini,
    /// Gemini and Claude at Vertex AI
    #[value(name = "vertex_ai")]
    VertexAi,
    /// AWS Bedrock's Converse
    Bedrock,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        use clap::CommandFactory as _;
        Flags::command().debug_assert();
    }

    #[test]
    fn faults_are_read_with_their_headers() {
        let turn = fault("429,retry-after=2,x-note=a=b").unwrap();
        assert!(matches!(
            turn.fault,
            Some(Fault::Status { status: 429, .. })
        ));
        let headers: Vec<(&str, &str)> = turn
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(headers, [("retry-after", "2"), ("x-note", "a=b")]);
        assert_eq!(fault("half-body").unwrap().fault, Some(Fault::HalfBody));
        for wrong in ["", "200", "600", "dropped", "429,retry-after", "429,=5"] {
            assert!(fault(wrong).is_err(), "{wrong}");
        }
        assert_eq!(amount("0.5"), Ok(0.5));
        assert!(amount("-1").is_err() && amount("NaN").is_err() && amount("inf").is_err());
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        for (text, expected) in [
            ("1", Some(1)),
            ("64k", Some(65_536)),
            ("512m", Some(536_870_912)),
            ("4G", Some(4_294_967_296)),
            ("0", None),
            ("", None),
            ("m", None),
            ("-1", None),
            ("1.5g", None),
            ("99999999999g", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
        assert_eq!(processors("1.5"), Ok(1.5));
        assert!(processors("0").is_err() && processors("NaN").is_err());
    }
}
