//! Flags and variables (`spec/environment.md` §20).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use env_server::{
    AuthToken, CoordinatorSettings, DataLimits, GatewayOptions, RequestSigning, RootfsSettings,
    S3Settings, Settings, SigningKeyError, Subsystem,
};

/// The environment of one trial: a world of files, and MCP servers behind one endpoint, over HTTP.
///
/// Exit codes: 0 stopped, 1 unhealthy (healthcheck), 2 a setting cannot be used (a port in use, a
/// directory that cannot be made), 3 the system failed. The token that requests have to carry is
/// taken from the variable ENV_AUTH_TOKEN.
#[derive(Debug, Parser)]
#[command(name = "archipelago-env", version)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Address or host name to listen on
    #[arg(long, env = "HOST", default_value = "127.0.0.1", global = true)]
    pub(crate) host: String,

    /// Port to listen on; 0 takes a free one
    #[arg(long, env = "PORT", default_value_t = 8080, global = true)]
    pub(crate) port: u16,

    /// Directory of the agent's files [default: `/` and the name of the subsystem]
    #[arg(long, env = "FILESYSTEM_ROOT", value_parser = path, value_name = "DIR")]
    filesystem_root: Option<PathBuf>,

    /// Directory of the applications' state [default: `/` and the name of the subsystem]
    #[arg(long, env = "APPS_DATA_ROOT", value_parser = path, value_name = "DIR")]
    apps_data_root: Option<PathBuf>,

    /// Name of the subsystem of the agent's files
    #[arg(
        long,
        env = "FILESYSTEM_SUBSYSTEM_NAME",
        default_value = "filesystem",
        value_parser = name,
        value_name = "NAME"
    )]
    filesystem_subsystem_name: String,

    /// Name of the subsystem of the applications' state
    #[arg(
        long,
        env = "APPS_DATA_SUBSYSTEM_NAME",
        default_value = ".apps_data",
        value_parser = name,
        value_name = "NAME"
    )]
    apps_data_subsystem_name: String,

    /// Host name besides the loopback ones under which clients reach this environment; `*` allows all
    #[arg(
        long = "allowed-host",
        env = "ALLOWED_HOSTS",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    allowed_hosts: Vec<String>,

    /// Seconds that a lifecycle hook may run which names no limit of its own
    #[arg(
        long,
        env = "LIFECYCLE_HOOK_TIMEOUT_SECONDS",
        default_value = "3000",
        value_parser = positive_seconds,
        value_name = "SECONDS"
    )]
    hook_timeout: Duration,

    /// Bucket of snapshots in S3. The standard variables of AWS (AWS_ENDPOINT_URL,
    /// AWS_ACCESS_KEY_ID, …) say how S3 is reached
    #[arg(
        long,
        env = "S3_SNAPSHOTS_BUCKET",
        default_value = "snapshots",
        value_name = "NAME"
    )]
    s3_bucket: String,

    /// What the keys of snapshots in S3 begin with
    #[arg(
        long,
        env = "S3_SNAPSHOTS_PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    s3_prefix: String,

    /// Region of S3 unless a request names one
    #[arg(
        long,
        env = "S3_DEFAULT_REGION",
        default_value = "us-west-2",
        value_name = "NAME"
    )]
    s3_region: String,

    /// Seconds that one request to S3 may take at least
    #[arg(
        long,
        env = "SNAPSHOT_UPLOAD_TIMEOUT_FLOOR_SECONDS",
        default_value = "300",
        value_parser = positive_seconds,
        value_name = "SECONDS"
    )]
    s3_timeout: Duration,

    /// MiB each second below which a request to S3 is too slow
    #[arg(
        long,
        env = "SNAPSHOT_UPLOAD_MIN_THROUGHPUT_MIB_S",
        default_value = "5",
        value_parser = positive,
        value_name = "NUMBER"
    )]
    s3_min_throughput: f64,

    /// Seconds between two lines of the log about a long upload to S3
    #[arg(
        long,
        env = "SNAPSHOT_UPLOAD_PROGRESS_INTERVAL_SECONDS",
        default_value = "60",
        value_parser = positive_seconds,
        value_name = "SECONDS"
    )]
    s3_progress_interval: Duration,

    /// Root of the machine whose changes are captured
    #[arg(long, env = "ROOTFS_ROOT", default_value = "/", value_parser = path, value_name = "DIR")]
    rootfs_root: PathBuf,

    /// File that marks since when changes of the machine count
    #[arg(
        long,
        env = "ROOTFS_MARKER",
        default_value = "/run/archipelago/rootfs-baseline",
        value_parser = path,
        value_name = "FILE"
    )]
    rootfs_marker: PathBuf,

    /// Directory of the coordinator's state [default: `.coordinator` in that of the applications]
    #[arg(long, env = "COORDINATOR_ROOT", value_parser = path, value_name = "DIR")]
    coordinator_root: Option<PathBuf>,

    /// Seconds that an MCP server may take to start; one that ends before is refused at once
    #[arg(
        long,
        env = "MCP_START_TIMEOUT_SECONDS",
        default_value = "300",
        value_parser = positive_seconds,
        value_name = "SECONDS"
    )]
    start_timeout: Duration,

    /// Seconds that an MCP server may take for an answer
    #[arg(
        long,
        env = "MCP_GATEWAY_SSE_READ_TIMEOUT_SECONDS",
        value_parser = positive_seconds,
        value_name = "SECONDS"
    )]
    mcp_timeout: Option<Duration>,

    /// Simplify tool schemas for clients that read neither references nor mixed enumerations
    #[arg(long, env = "GATEWAY_SCHEMA_CLEANUP", value_parser = clap::builder::BoolishValueParser::new())]
    schema_cleanup: bool,

    /// Stop when standard input closes, so that this program does not outlive the one that started it
    #[arg(long)]
    pub(crate) stop_on_stdin_close: bool,

    /// Where this runs: anything but `local` makes the logs JSON lines
    #[arg(long, env = "ENV", value_enum, default_value_t = Deployment::Local, hide_possible_values = false)]
    env: Deployment,

    /// Base64 of the raw Ed25519 key with which requests have to be signed
    #[arg(
        long,
        env = "API_SIGNING_PUBLIC_KEY",
        value_name = "BASE64",
        default_value = "",
        hide_default_value = true
    )]
    signing_public_key: String,

    /// Only a variable, since flags are seen by everybody on the machine.
    #[arg(skip = std::env::var("ENV_AUTH_TOKEN").unwrap_or_default())]
    auth_token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum Command {
    /// Ask a running environment whether it answers: exit code 0 or 1
    Healthcheck {
        /// Ask again for so many seconds until it answers
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        wait: u64,
    },
    /// Print the description of the HTTP interface
    Openapi {
        /// As an OpenAPI document, or as a page for people
        #[arg(long, value_enum, default_value_t = ApiFormat::Json)]
        format: ApiFormat,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiFormat {
    Json,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deployment {
    Local,
    Dev,
    Demo,
    Prod,
}

/// Variables that mean something to the Python reference and nothing here, and what takes their place.
const WITHOUT_EFFECT: [(&str, &str); 11] = [
    ("S3_ACCESS_KEY_ID", "use `AWS_ACCESS_KEY_ID`"),
    ("S3_SECRET_ACCESS_KEY", "use `AWS_SECRET_ACCESS_KEY`"),
    ("S3_SESSION_TOKEN", "use `AWS_SESSION_TOKEN`"),
    ("S3_TRANSFER_BACKEND", "transfers are built in"),
    ("DATADOG_LOGGING", LOGS),
    ("DATADOG_API_KEY", NUMBERS),
    ("DATADOG_APP_KEY", NUMBERS),
    ("MODAL_IDENTITY_TOKEN", KEYS),
    ("MODAL_OIDC_ROLE_ARN", KEYS),
    ("MODAL_IS_REMOTE", KEYS),
    ("MODAL_SANDBOX_ID", "nothing here depends on it"),
];
const LOGS: &str = "logs go to standard error, as JSON lines unless `ENV` is `local`";
const NUMBERS: &str = "numbers are at `GET /metrics`";
const KEYS: &str = "keys of S3 come from the variables of AWS, or with the request";

/// What has to be said of variables that somebody set for nothing.
pub(crate) fn without_effect(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let set = WITHOUT_EFFECT.into_iter().filter(|(name, _)| {
        // Nobody is disappointed where something is switched off.
        variable(name).is_some_and(|value| !matches!(value.trim(), "" | "0" | "false"))
    });
    set.map(|(name, instead)| format!("`{name}` has no effect: {instead}"))
        .collect()
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error(transparent)]
    Signing(#[from] SigningKeyError),
    #[error(
        "both subsystems are called `{0}` (FILESYSTEM_SUBSYSTEM_NAME, APPS_DATA_SUBSYSTEM_NAME)"
    )]
    SameName(String),
}

impl Options {
    pub(crate) fn logs_are_json(&self) -> bool {
        self.env != Deployment::Local
    }

    /// # Errors
    /// When the key of signatures cannot be used, or two settings do not fit together.
    pub(crate) fn into_settings(self) -> Result<Settings, SettingsError> {
        if self.filesystem_subsystem_name == self.apps_data_subsystem_name {
            return Err(SettingsError::SameName(self.filesystem_subsystem_name));
        }
        let subsystem = |name: String, root: Option<PathBuf>| match root {
            Some(root) => Subsystem { name, root },
            None => Subsystem::at_root(&name),
        };
        let mut s3 = S3Settings::default();
        s3.bucket = self.s3_bucket;
        s3.prefix = self.s3_prefix;
        s3.default_region = self.s3_region;
        s3.take_variables(std::env::vars());
        s3.request_timeout = self.s3_timeout;
        s3.min_throughput = self.s3_min_throughput * 1024.0 * 1024.0;
        s3.progress_interval = self.s3_progress_interval;
        let mut gateway = GatewayOptions {
            schema_cleanup: self.schema_cleanup,
            start_timeout: self.start_timeout,
            ..GatewayOptions::default()
        };
        if let Some(limit) = self.mcp_timeout {
            gateway.call_timeout = limit;
            gateway.http_read_timeout = limit;
        }
        let coordinator = CoordinatorSettings {
            root: self.coordinator_root,
            ..CoordinatorSettings::default()
        };
        let rootfs = RootfsSettings {
            root: self.rootfs_root,
            marker: self.rootfs_marker,
            ..RootfsSettings::default()
        };
        let data = DataLimits {
            hook_timeout: self.hook_timeout,
            ..DataLimits::default()
        };
        let signing = match self.signing_public_key.as_str() {
            "" => None,
            key => Some(Arc::new(RequestSigning::new(key)?)),
        };
        Ok(Settings {
            signing,
            s3,
            data,
            gateway,
            coordinator,
            rootfs,
            host: self.host,
            port: self.port,
            filesystem: subsystem(self.filesystem_subsystem_name, self.filesystem_root),
            apps_data: subsystem(self.apps_data_subsystem_name, self.apps_data_root),
            allowed_hosts: self.allowed_hosts,
            auth_token: AuthToken::new(self.auth_token),
            ..Settings::default()
        })
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("a number above 0 is needed".to_owned()),
    }
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    let seconds = positive(text)?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("a path is needed".to_owned());
    }
    Ok(PathBuf::from(text))
}

/// The name of a subsystem: a directory of `/`, and the first component of the paths of an archive.
fn name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty()
        && !text.contains(['/', '\\', '\0'])
        && !text.contains("..")
        && text != "."
        && text.trim() == text;
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("a name without slashes, `..` and blanks around it is needed".to_owned())
    }
}

/// The variable from which a value came that is refused, since the message names the flag only.
pub(crate) fn variable_of(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    let long = flag.split([' ', '=']).next()?.strip_prefix("--")?;
    let command = <Options as clap::CommandFactory>::command();
    let variable = command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(long))?
        .get_env()?
        .to_str()?
        .to_owned();
    (std::env::var(&variable).ok().as_ref() == Some(value)).then_some(variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_flags_are_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn a_subsystem_lies_below_the_root_of_the_machine_under_its_name() {
        let settings = |args: &[&str]| {
            let args = [&["archipelago-env"], args].concat();
            Options::try_parse_from(args)
                .unwrap()
                .into_settings()
                .unwrap()
        };
        let named = settings(&[
            "--filesystem-subsystem-name",
            "files",
            "--apps-data-root",
            "/elsewhere/data",
        ]);
        assert_eq!(named.filesystem.root, PathBuf::from("/files"));
        assert_eq!(named.apps_data.name, ".apps_data");
        assert_eq!(named.apps_data.root, PathBuf::from("/elsewhere/data"));
    }

    #[test]
    fn what_is_set_for_nothing_is_said_by_name_and_without_its_value() {
        let said = without_effect(|name| match name {
            "S3_ACCESS_KEY_ID" => Some("AKIA".to_owned()),
            "DATADOG_LOGGING" => Some("false".to_owned()),
            "MODAL_SANDBOX_ID" => Some(String::new()),
            _ => None,
        });
        assert_eq!(
            said,
            ["`S3_ACCESS_KEY_ID` has no effect: use `AWS_ACCESS_KEY_ID`"]
        );
        assert_eq!(without_effect(|_| Some("x".to_owned())).len(), 11);
    }
}
