//! What commands work with, wired from the environment of the process.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use agent_core::Agents;
use formats::owner::Owner;
use grading::Registry;
use harness::Services;
use llm_client::Models;
use program::Variables;
use sandbox::{ProcessSandbox, Sandbox, UrlSandbox};

use crate::flags;

/// Variables, with the logs started as they say. The error is the exit code, already explained.
pub(crate) fn variables() -> Result<Variables, ExitCode> {
    let variables =
        Variables::load().map_err(|error| program::fail(Owner::Configuration, error))?;
    program::start_logs("warn", variables.is_deployed());
    Ok(variables)
}

/// Services around `sandbox`.
pub(crate) fn services(variables: &Variables, sandbox: Arc<dyn Sandbox>) -> Services {
    Services {
        models: Models::new(|name| variables.get(name)),
        agents: Agents::builtin(),
        registry: Registry::builtin(),
        sandbox,
    }
}

/// The sandbox that `--sandbox` names. The error is the exit code, already explained.
pub(crate) fn sandbox(named: &str, keep: bool) -> Result<Arc<dyn Sandbox>, ExitCode> {
    match named {
        "process" => process(keep)
            .map(|sandbox| Arc::new(sandbox) as Arc<dyn Sandbox>)
            .map_err(|error| {
                program::fail(
                    Owner::Infrastructure,
                    format_args!("cannot find this program on disk: {error}"),
                )
            }),
        "docker" => Err(program::fail(
            Owner::Configuration,
            "`--sandbox docker` is not available in this version; use `process`, or start a \
             container by hand and give its address",
        )),
        address if address.starts_with("http://") || address.starts_with("https://") => {
            Ok(Arc::new(UrlSandbox::new(address)))
        }
        other => Err(program::fail(
            Owner::Configuration,
            format_args!("`--sandbox` must be `process` or an address, got `{other}`"),
        )),
    }
}

/// Environments as processes: this program, in its other roles.
fn process(keep: bool) -> io::Result<ProcessSandbox> {
    let this = std::env::current_exe()?;
    let mut sandbox = ProcessSandbox::new(&this, [flags::ENVIRONMENT])
        .with_program(flags::FILESYSTEM_SERVER, &this)
        .inherit(std::env::vars_os());
    sandbox.keep = keep;
    Ok(sandbox)
}
