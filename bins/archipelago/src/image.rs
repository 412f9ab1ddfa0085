//! `archipelago image`.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};
use program::Refused;
use sandbox::{BuildNews, DEFAULT_IMAGE, Engine, ImageBuild, SandboxError};
use tokio_util::sync::CancellationToken;

use crate::flags::{ImageBuildFlags, ImageCommand, ImageKind};
use crate::services;

pub(crate) async fn image(command: &ImageCommand) -> Result<ExitCode, Refused> {
    let engine = services::engine(&services::variables()?);
    match command {
        ImageCommand::Build(flags) => build(&engine, flags).await?,
        ImageCommand::List => list(&engine).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn build(engine: &Engine, flags: &ImageBuildFlags) -> Result<(), Refused> {
    let (dockerfile, name) = match flags.kind {
        ImageKind::Environment => ("bins/archipelago-env/Dockerfile", DEFAULT_IMAGE),
        ImageKind::Worlds => (
            "bins/archipelago-env/worlds.Dockerfile",
            "archipelago-env-worlds",
        ),
    };
    if !flags.context.join(dockerfile).is_file() {
        return Err(Refused::configuration(format_args!(
            "there is no `{dockerfile}` in `{}`; give the root of the repository by `--context`",
            flags.context.display()
        )));
    }
    let build = ImageBuild {
        context: flags.context.clone(),
        dockerfile: dockerfile.to_owned(),
        tag: flags.tag.clone().unwrap_or_else(|| name.to_owned()),
        arguments: flags.arguments.iter().cloned().collect(),
        network: flags.network.clone(),
    };
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let progress = Progress::new();
    let built = tokio::select! {
        built = engine.build_image(&build, |news| progress.tell(&news)) => built,
        () = cancel.cancelled() => Err(SandboxError::Cancelled),
    };
    progress.end();
    built.map_err(|error| refused(&error))?;
    list(engine).await
}

async fn list(engine: &Engine) -> Result<(), Refused> {
    let images = engine.images().await.map_err(|error| refused(&error))?;
    let mut stdout = std::io::stdout().lock();
    let mut write = || {
        for image in &images {
            let name = match image.tags.as_slice() {
                [] => "(no name any more)".to_owned(),
                tags => tags.join(" "),
            };
            let created = jiff::Timestamp::from_second(image.created).unwrap_or_default();
            writeln!(
                stdout,
                "{name:<36} {:<12} {:>6} MB  {}  {}",
                image.kind,
                image.bytes / 1_000_000,
                created.strftime("%Y-%m-%d %H:%M UTC"),
                image.id.get(..19).unwrap_or(&image.id),
            )?;
        }
        Ok::<_, std::io::Error>(())
    };
    write().map_err(|error| {
        Refused::infrastructure(format_args!("cannot write to stdout: {error}"))
    })?;
    if images.is_empty() {
        program::say("there are no images yet; `archipelago image build` makes one");
    }
    Ok(())
}

fn refused(error: &SandboxError) -> Refused {
    Refused::new(error.owner(), error)
}

/// A bar and the latest line on a terminal, else every line.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn new() -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = "{spinner} {elapsed} [{bar:20}] {pos}/{len} {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(style) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(120));
            bar
        }))
    }

    fn tell(&self, news: &BuildNews) {
        match (news, &self.0) {
            (
                BuildNews::Step {
                    number,
                    total,
                    instruction,
                },
                bar,
            ) => {
                let line = format!("step {number}/{total}  {instruction}");
                match bar {
                    Some(bar) => {
                        bar.set_length(u64::from(*total));
                        bar.set_position(u64::from(*number) - 1);
                        bar.println(line);
                    }
                    None => program::say(line),
                }
            }
            (BuildNews::Line(line), Some(bar)) => bar.set_message(line.clone()),
            (BuildNews::Line(line), None) => {
                program::say(format_args!("    {line}"));
            }
            _ => {}
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
