//! Building images and listing them.

use std::collections::HashMap;
use std::path::PathBuf;

use bollard::models::BuildInfo;
use bollard::query_parameters::{BuildImageOptions, ListImagesOptions};
use futures::StreamExt as _;
use tokio_util::io::ReaderStream;

use super::context;
use super::engine::{Engine, reason};
use crate::SandboxError;
use crate::error::LastLines;

/// The label that says that an image is one of ours, and which.
const KIND: &str = "archipelago.image";

/// Lines of a failed build that its error shows.
const LAST_LINES: usize = 20;

/// What to build.
#[derive(Debug, Clone)]
pub struct ImageBuild {
    /// The folder that is sent to the engine, without what its `.dockerignore` names.
    pub context: PathBuf,
    /// The Dockerfile, as a path inside the context.
    pub dockerfile: String,
    /// The name of the image.
    pub tag: String,
    /// Build arguments.
    pub arguments: HashMap<String, String>,
    /// The network of the build's steps; the engine's default where it is `None`.
    pub network: Option<String>,
}

/// What happens during a build.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildNews {
    /// A step of the Dockerfile begins.
    Step {
        /// Its number, from 1.
        number: u32,
        /// How many there are.
        total: u32,
        /// What it does.
        instruction: String,
    },
    /// A line that the step in progress printed.
    Line(String),
}

/// An image of ours in an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEntry {
    /// Its names; none where newer images took them all.
    pub tags: Vec<String>,
    /// `environment` or `worlds`.
    pub kind: String,
    /// Bytes, with the layers that it shares with others.
    pub bytes: u64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Such as `sha256:…`.
    pub id: String,
}

impl Engine {
    /// Builds an image by the engine's own builder, and tells what happens.
    ///
    /// Dropping the future ends the build.
    ///
    /// # Errors
    /// [`SandboxError`] with the builder's words and the last lines of the step that failed.
    pub async fn build_image(
        &self,
        build: &ImageBuild,
        mut news: impl FnMut(BuildNews),
    ) -> Result<(), SandboxError> {
        let docker = self.docker().await?;
        let (folder, dockerfile) = (build.context.clone(), build.dockerfile.clone());
        let pack = move || context::pack(&folder, &dockerfile);
        let packed = tokio::task::spawn_blocking(pack).await;
        let file = packed
            .map_err(std::io::Error::other)
            .and_then(|packed| packed)
            .map_err(|source| SandboxError::Folder {
                what: "the build context of",
                path: build.context.clone(),
                source,
            })?;
        let options = BuildImageOptions {
            dockerfile: build.dockerfile.clone(),
            t: Some(build.tag.clone()),
            buildargs: Some(build.arguments.clone()),
            networkmode: build.network.clone(),
            rm: true,
            forcerm: true,
            ..BuildImageOptions::default()
        };
        let body = bollard::body_try_stream(ReaderStream::new(tokio::fs::File::from_std(file)));
        let mut progress = Box::pin(docker.build_image(options, None, Some(body)));
        let mut last = Vec::new();
        while let Some(told) = progress.next().await {
            let problem = match told {
                Ok(info) => {
                    tell(&info, &mut last, &mut news);
                    info.error_detail
                        .map(|detail| detail.message.unwrap_or_default())
                }
                Err(error) if super::engine::is_answer(&error) => Some(reason(&error)),
                Err(error) => return Err(self.unreachable(&error)),
            };
            if let Some(problem) = problem {
                return Err(SandboxError::Refused {
                    doing: format!("build the image `{}`", build.tag),
                    reason: match last.as_slice() {
                        [] => problem,
                        _ => format!("{problem}{}", LastLines(last)),
                    },
                });
            }
        }
        Ok(())
    }

    /// The images in the engine that were built from our Dockerfiles, the newest first.
    ///
    /// # Errors
    /// [`SandboxError`] where the engine does not answer.
    pub async fn images(&self) -> Result<Vec<ImageEntry>, SandboxError> {
        let options = ListImagesOptions {
            filters: Some(HashMap::from([("label".to_owned(), vec![KIND.to_owned()])])),
            ..ListImagesOptions::default()
        };
        let listed = self.docker().await?.list_images(Some(options)).await;
        let images = listed.map_err(|error| self.refused("list images".to_owned(), &error))?;
        let mut images: Vec<ImageEntry> = images
            .into_iter()
            .map(|mut image| ImageEntry {
                // Older engines write `<none>:<none>` for no name.
                tags: image
                    .repo_tags
                    .into_iter()
                    .filter(|tag| !tag.starts_with("<none>"))
                    .collect(),
                kind: image.labels.remove(KIND).unwrap_or_default(),
                bytes: u64::try_from(image.size).unwrap_or_default(),
                created: image.created,
                id: image.id,
            })
            .collect();
        images.sort_by_key(|image| std::cmp::Reverse(image.created));
        Ok(images)
    }
}

/// Passes on what the builder said.
fn tell(info: &BuildInfo, last: &mut Vec<String>, news: &mut impl FnMut(BuildNews)) {
    let said = info.stream.as_deref().or(info.status.as_deref());
    for line in said.unwrap_or_default().lines() {
        let line = plain(line);
        if line.is_empty() {
            continue;
        }
        if let Some(step) = step(&line) {
            last.clear();
            news(step);
            continue;
        }
        if last.len() >= LAST_LINES {
            last.remove(0);
        }
        last.push(line.clone());
        news(BuildNews::Line(line));
    }
}

/// The line without the colours of compilers and package managers, and without control characters.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        // A sequence ends with a letter (ECMA-48).
        rest = after
            .split_once(|c: char| c.is_ascii_alphabetic())
            .map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.retain(|c| !c.is_control());
    plain.trim().to_owned()
}

/// A line such as `Step 3/12 : COPY . .`.
fn step(line: &str) -> Option<BuildNews> {
    let (numbers, instruction) = line.strip_prefix("Step ")?.split_once(" : ")?;
    let (number, total) = numbers.split_once('/')?;
    Some(BuildNews::Step {
        number: number.parse().ok()?,
        total: total.parse().ok()?,
        instruction: instruction.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_without_colours() {
        assert_eq!(plain("\u{1b}[0m\u{1b}[91m  Compiling a\r"), "Compiling a");
        assert_eq!(plain("plain \u{7}text"), "plain text");
        assert_eq!(plain("\u{1b}[1"), "");
    }

    #[test]
    fn steps_are_told_from_lines() {
        let expected = BuildNews::Step {
            number: 3,
            total: 12,
            instruction: "RUN a : b".to_owned(),
        };
        assert_eq!(step("Step 3/12 : RUN a : b"), Some(expected));
        for line in ["Step into", "Step a/b : c", "step 1/2 : x"] {
            assert_eq!(step(line), None, "{line}");
        }
    }
}
