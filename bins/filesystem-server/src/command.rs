//! The command line.

use std::{ffi::OsString, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use formats::owner::Owner;
use rmcp::{ServiceExt, transport::stdio_pipes};

use crate::{FilesystemServer, Limits, Settings};

/// The root when nothing says otherwise: where worlds lie in the container.
const DEFAULT_ROOT: &str = "/filesystem";

/// Where private data of servers lies when nothing says otherwise.
const DEFAULT_DATA: &str = "/.apps_data";

/// MCP file server for worlds, over stdio: shows the files of one directory, and lets them be changed if asked to.
#[derive(Debug, Parser)]
#[command(name = "filesystem-server", version)]
struct Flags {
    /// Directory to serve [default: APP_FS_ROOT, else FILESYSTEM_ROOT, else /filesystem]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Offer the tools that write, create, edit, move and delete [also: FILESYSTEM_WRITABLE=true]
    #[arg(long)]
    writable: bool,
    #[command(flatten)]
    limits: LimitFlags,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Largest text file to read or write, in bytes
    #[arg(long, value_name = "BYTES", env = "FILESYSTEM_MAX_TEXT_BYTES", default_value_t = Limits::default().max_text_bytes)]
    max_text_bytes: u64,
    /// Largest picture to return, in bytes
    #[arg(long, value_name = "BYTES", env = "FILESYSTEM_MAX_IMAGE_BYTES", default_value_t = Limits::default().max_image_bytes)]
    max_image_bytes: u64,
    /// Largest result as JSON, in bytes
    #[arg(long, value_name = "BYTES", env = "FILESYSTEM_MAX_RESULT_BYTES", default_value_t = Limits::default().max_result_bytes)]
    max_result_bytes: u64,
    /// Most lines of a listing or search
    #[arg(long, value_name = "N", env = "FILESYSTEM_MAX_LISTED_ENTRIES", default_value_t = Limits::default().max_listed_entries)]
    max_listed_entries: usize,
    /// Most directory entries that one call looks at
    #[arg(long, value_name = "N", env = "FILESYSTEM_MAX_SCANNED_ENTRIES", default_value_t = Limits::default().max_scanned_entries)]
    max_scanned_entries: usize,
    /// Most levels that a search goes down
    #[arg(long, value_name = "N", env = "FILESYSTEM_MAX_SEARCH_DEPTH", default_value_t = Limits::default().max_search_depth)]
    max_search_depth: usize,
    /// Longest time of one listing, search or tree, in seconds
    #[arg(long, value_name = "SECONDS", env = "FILESYSTEM_MAX_SCAN_TIME", default_value_t = Limits::default().max_scan_time.as_secs())]
    max_scan_time: u64,
    /// Most calls at work at the same time
    #[arg(long, value_name = "N", env = "FILESYSTEM_MAX_CONCURRENT_CALLS", default_value_t = Limits::default().max_concurrent_calls)]
    max_concurrent_calls: usize,
}

/// The program: serves MCP on stdin and stdout until stdin closes. `args` starts with the program's name, as
/// [`std::env::args_os`] does. Starts its own runtime, so it must be called outside of one.
///
/// Exit codes: 0 the client closed stdin, 2 wrong flags or a root that cannot be opened, 3 the connection broke.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let flags = match Flags::try_parse_from(args) {
        Ok(flags) => flags,
        Err(error) => {
            // Help and version are no failures, and go to stdout by clap's own choice.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(Owner::Configuration.exit_code())
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    program::start_logs("warn,filesystem_server=info", false);
    // Not through `program::Variables`: a `.env` file here may belong to the world.
    let settings = settings(flags, |name| std::env::var_os(name));
    let server = match FilesystemServer::new(settings) {
        Ok(server) => server,
        Err(error) => return program::fail(Owner::Configuration, error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return program::fail(Owner::Infrastructure, error),
    };
    let ended = runtime.block_on(serve(server));
    // A call that still reads a slow disk must not keep the process alive; nobody waits for it.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program::fail(Owner::Infrastructure, error),
    }
}

async fn serve(server: FilesystemServer) -> anyhow::Result<()> {
    tracing::info!(root = %server.root().display(), "serving");
    let service = match server.serve(stdio_pipes()).await {
        Ok(service) => service,
        // Closed before the first message: a client that changed its mind.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    service.waiting().await?;
    Ok(())
}

fn settings(flags: Flags, variable: impl Fn(&str) -> Option<OsString>) -> Settings {
    let path_variable = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let is_on = |name: &str| {
        variable(name)
            .and_then(|value| value.into_string().ok())
            .is_some_and(|value| {
                matches!(
                    value.trim().to_ascii_lowercase().as_str(),
                    "1" | "true" | "yes" | "on"
                )
            })
    };
    let limits = flags.limits;
    let state = path_variable("STATE_LOCATION").unwrap_or_else(|| {
        let data = path_variable("APPS_DATA_ROOT").unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
        data.join("filesystem-server")
    });
    Settings {
        root: flags
            .root
            .or_else(|| path_variable("APP_FS_ROOT"))
            .or_else(|| path_variable("FILESYSTEM_ROOT"))
            .unwrap_or_else(|| PathBuf::from(DEFAULT_ROOT)),
        writable: flags.writable || is_on("FILESYSTEM_WRITABLE"),
        expose_physical_paths: is_on("EXPOSE_PHYSICAL_PATHS"),
        injected_errors: Some(state.join(".config/injected_errors.json")),
        limits: Limits {
            max_text_bytes: limits.max_text_bytes,
            max_image_bytes: limits.max_image_bytes,
            max_result_bytes: limits.max_result_bytes,
            max_listed_entries: limits.max_listed_entries,
            max_scanned_entries: limits.max_scanned_entries,
            max_search_depth: limits.max_search_depth,
            max_scan_time: Duration::from_secs(limits.max_scan_time),
            max_concurrent_calls: limits.max_concurrent_calls,
        },
    }
}
