//! What commands work with, wired from the environment of the process.

use std::sync::Arc;

use agent_core::Agents;
use grading::{GradeOptions, Registry};
use harness::Services;
use llm_client::Models;
use program::{Refused, Variables};
use sandbox::{DockerSandbox, Engine, Isolation, ProcessSandbox, Resources, Sandbox, UrlSandbox};

use crate::flags::{self, ContainerFlags, IsolationFlag, ModelFlags, SandboxFlags, Switch};

/// Variables, with the logs started as they say.
pub(crate) fn variables() -> Result<Variables, Refused> {
    let variables = Variables::load()?;
    program::start_logs("warn", variables.is_deployed());
    Ok(variables)
}

/// The models with their credentials and limits, and what the flags make of their exchanges.
pub(crate) fn models(variables: &Variables, flags: &ModelFlags) -> Result<Models, Refused> {
    Models::from_variables(|name| variables.get(name))
        .and_then(|models| models.with_folders(flags.record.as_deref(), flags.cache.as_deref()))
        .map_err(|error| Refused::new(error.owner(), error))
}

/// Services with `models` around `sandbox`.
pub(crate) fn services(models: Models, sandbox: Arc<dyn Sandbox>) -> Services {
    Services {
        models,
        agents: Agents::builtin(),
        registry: Registry::builtin(),
        grading: grade_options(),
        sandbox,
    }
}

/// The choices of grading where no flag says otherwise: programs of verifiers are found where this
/// program's user finds them.
pub(crate) fn grade_options() -> GradeOptions {
    let mut options = GradeOptions::default();
    if let Some(path) = std::env::var_os("PATH") {
        options.program_path = path;
    }
    options
}

/// The sandbox that the flags name.
pub(crate) fn sandbox(
    flags: &SandboxFlags,
    variables: &Variables,
) -> Result<Arc<dyn Sandbox>, Refused> {
    if flags.sandbox != "docker" && flags.container != ContainerFlags::default() {
        return Err(Refused::configuration(format_args!(
            "`--image`, `--memory`, `--cpus`, `--pids`, `--world-size` and `--network` need \
             `--sandbox docker`, got `{}`",
            flags.sandbox
        )));
    }
    if flags.sandbox != "process" && flags.isolation.is_some() {
        return Err(Refused::configuration(format_args!(
            "`--isolation` needs `--sandbox process`, got `{}`",
            flags.sandbox
        )));
    }
    match flags.sandbox.as_str() {
        "process" => {
            let mut sandbox = process()?;
            sandbox.keep = flags.keep;
            sandbox.isolation = match flags.isolation {
                None | Some(IsolationFlag::Auto) => Isolation::Auto,
                Some(IsolationFlag::Bubblewrap) => Isolation::Bubblewrap,
                Some(IsolationFlag::None) => Isolation::None,
            };
            Ok(Arc::new(sandbox))
        }
        "docker" => Ok(Arc::new(docker(&flags.container, flags.keep, variables))),
        address if address.starts_with("http://") || address.starts_with("https://") => {
            Ok(Arc::new(UrlSandbox::new(address)))
        }
        other => Err(Refused::configuration(format_args!(
            "`--sandbox` must be `process`, `docker` or an address, got `{other}`"
        ))),
    }
}

/// Environments as processes, for commands that start none.
pub(crate) fn process_sandbox() -> Result<Arc<dyn Sandbox>, Refused> {
    Ok(Arc::new(process()?))
}

/// The container engine that `DOCKER_HOST` names.
pub(crate) fn engine(variables: &Variables) -> Engine {
    Engine::new(variables.get("DOCKER_HOST"))
}

/// Environments as containers.
fn docker(flags: &ContainerFlags, keep: bool, variables: &Variables) -> DockerSandbox {
    let engine = engine(variables);
    let mut sandbox = match &flags.image {
        Some(image) => DockerSandbox::new(engine, image),
        None => DockerSandbox::by_task(engine),
    };
    sandbox.keep = keep;
    sandbox.limits.world_bytes = flags.world_size;
    sandbox.fixed = Resources {
        memory_bytes: flags.memory,
        cpus: flags.cpus,
        pids: flags.pids,
        network: flags.network.map(|switch| switch == Switch::On),
    };
    sandbox
}

/// Environments as processes: this program, in its other roles.
fn process() -> Result<ProcessSandbox, Refused> {
    let this = std::env::current_exe().map_err(|error| {
        Refused::infrastructure(format_args!("cannot find this program on disk: {error}"))
    })?;
    Ok(ProcessSandbox::new(&this, [flags::ENVIRONMENT])
        .with_program(flags::FILESYSTEM_SERVER, &this)
        .inherit(std::env::vars_os()))
}
