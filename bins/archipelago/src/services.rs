//! What commands work with, wired from the environment of the process.

use std::sync::Arc;

use agent_core::Agents;
use grading::Registry;
use harness::Services;
use llm_client::Models;
use program::{Refused, Variables};
use sandbox::{ProcessSandbox, Sandbox, UrlSandbox};

use crate::flags;

/// Variables, with the logs started as they say.
pub(crate) fn variables() -> Result<Variables, Refused> {
    let variables = Variables::load()?;
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

/// The sandbox that `--sandbox` names.
pub(crate) fn sandbox(named: &str, keep: bool) -> Result<Arc<dyn Sandbox>, Refused> {
    match named {
        "process" => Ok(Arc::new(process(keep)?)),
        "docker" => Err(Refused::configuration(
            "`--sandbox docker` is not available in this version; use `process`, or start a \
             container by hand and give its address",
        )),
        address if address.starts_with("http://") || address.starts_with("https://") => {
            Ok(Arc::new(UrlSandbox::new(address)))
        }
        other => Err(Refused::configuration(format_args!(
            "`--sandbox` must be `process` or an address, got `{other}`"
        ))),
    }
}

/// Environments as processes: this program, in its other roles.
fn process(keep: bool) -> Result<ProcessSandbox, Refused> {
    let this = std::env::current_exe().map_err(|error| {
        Refused::infrastructure(format_args!("cannot find this program on disk: {error}"))
    })?;
    let mut sandbox = ProcessSandbox::new(&this, [flags::ENVIRONMENT])
        .with_program(flags::FILESYSTEM_SERVER, &this)
        .inherit(std::env::vars_os());
    sandbox.keep = keep;
    Ok(sandbox)
}
