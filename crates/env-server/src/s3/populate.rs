//! Objects of S3 to files of the world.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use snapshot::archive::{Staged, Staging, share_with_group};
use tokio::sync::mpsc;

use super::client::{self, S3CredentialsBody};
use super::jobs::Progress;
use crate::data::hooks::{self, Hook, HookTiming};
use crate::data::transfer::{self, UploadReader, UploadSender};
use crate::data::{commit, unpack_error};
use crate::environment::Environment;
use crate::error::{ApiError, InvalidItem};
use crate::metrics::Direction;
use crate::subsystem::{self, Place};

/// Objects up to this size are fetched side by side and whole.
const WHOLE: u64 = 1 << 20;

/// Objects fetched side by side.
const SIDE_BY_SIDE: usize = 24;

/// A request to fetch objects into the world.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct S3Populate {
    /// What to fetch, in this order; may be empty where there are hooks.
    pub(crate) sources: Vec<Source>,
    /// Run when everything is in place.
    #[serde(default)]
    pub(crate) post_populate_hooks: Option<Vec<Hook>>,
    /// Instead of those of the environment.
    #[serde(default)]
    pub(crate) s3_credentials: Option<S3CredentialsBody>,
}

/// Objects for one place.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Source {
    /// `s3://bucket/key`: all objects below `key/`; where there are none, the object of this key.
    pub(crate) url: String,
    /// `filesystem`, `.apps_data`, or a directory below one of them.
    #[serde(default)]
    pub(crate) subsystem: Option<String>,
}

/// What was fetched.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct S3Populated {
    /// Files.
    pub(crate) objects_added: u64,
    /// Their bytes.
    pub(crate) extracted_bytes: u64,
    /// The hooks in the order of the request.
    pub(crate) hook_timings: Vec<HookTiming>,
}

impl S3Populate {
    /// What can be seen to be wrong without asking anybody.
    pub(super) fn check(&self, environment: &Environment) -> Result<(), ApiError> {
        let invalid = |loc: &[Value], reason: &str, input: &Value| {
            let loc = [json!("body")].iter().chain(loc).cloned().collect();
            Err(ApiError::invalid(&InvalidItem::value(
                loc,
                reason,
                input.clone(),
            )))
        };
        let hooks = self.post_populate_hooks.as_ref().map_or(0, Vec::len);
        if self.sources.is_empty() && hooks == 0 {
            let reason = "At least one source or hook must be provided";
            return invalid(&[], reason, &json!({"sources": []}));
        }
        for (place, source) in self.sources.iter().enumerate() {
            let at = |field: &str| [json!("sources"), json!(place), json!(field)];
            if source.url.trim().is_empty() {
                return invalid(&at("url"), "url cannot be empty", &json!(source.url));
            }
            if let Err(reason) = source.place(environment) {
                return invalid(&at("subsystem"), &reason, &json!(source.subsystem));
            }
        }
        client::check(self.s3_credentials.as_ref())
    }

    /// Fetches everything beside the world first, then moves it into place, source by source.
    pub(super) async fn run(
        self,
        environment: Environment,
        progress: Arc<Progress>,
    ) -> Result<S3Populated, ApiError> {
        let _permit = crate::data::permit(&environment)?;
        let started = Instant::now();
        let mut sources = Vec::new();
        for source in &self.sources {
            let (bucket, key) = split(source.url.trim())?;
            let place = source.place(&environment).map_err(ApiError::bad_request)?;
            sources.push((bucket, key, place));
        }
        let mut fetched = Vec::new();
        for (bucket, key, place) in sources {
            let settings = &environment.settings.s3;
            let store = client::bucket(settings, self.s3_credentials.as_ref(), bucket)?;
            let fetch = Fetch {
                store,
                bucket,
                key,
                progress: &progress,
            };
            fetched.push(fetch.stage(&environment, place).await?);
        }
        let (mut objects_added, mut extracted_bytes) = (0, 0);
        for one in fetched {
            let report = commit(&environment, one.staged).await?;
            objects_added += report.members;
            extracted_bytes += report.bytes;
            if one.root == environment.settings.filesystem.root {
                share(one.root, one.files).await?;
            }
        }
        environment.metrics.moved(
            Direction::Populate,
            "s3",
            objects_added,
            extracted_bytes,
            started.elapsed(),
        );
        let hooks = self.post_populate_hooks.unwrap_or_default();
        let hook_timings = hooks::run(&hooks, &environment.settings.data).await?;
        tracing::info!(
            objects = objects_added,
            bytes = extracted_bytes,
            "populated from S3"
        );
        Ok(S3Populated {
            objects_added,
            extracted_bytes,
            hook_timings,
        })
    }
}

/// Lets the group of the agent's files change what was fetched into them.
async fn share(root: PathBuf, files: Vec<PathBuf>) -> Result<(), ApiError> {
    let sharing = tokio::task::spawn_blocking(move || share_with_group(&root, &files));
    sharing
        .await
        .map_err(|error| ApiError::internal(format!("sharing failed: {error}")))?
        .map_err(|(path, error)| {
            ApiError::internal(format!(
                "everything is in place, but `{}` cannot be shared with the group of the world: {error}",
                path.display()
            ))
        })
}

impl Source {
    fn place(&self, environment: &Environment) -> Result<Place, String> {
        let settings = &environment.settings;
        let given = self
            .subsystem
            .as_deref()
            .unwrap_or(&settings.filesystem.name);
        subsystem::place(settings, given.trim())
    }
}

/// Bucket and key of `s3://bucket/key`.
fn split(url: &str) -> Result<(&str, &str), ApiError> {
    let refuse = |reason: String| Err(ApiError::bad_request(reason));
    let Some(rest) = url.strip_prefix("s3://") else {
        return refuse(format!(
            "Invalid S3 URL format '{url}'. Expected 's3://bucket/key'"
        ));
    };
    let Some((bucket, key)) = rest.split_once('/') else {
        return refuse(format!(
            "Invalid S3 URL format '{url}'. Expected 's3://bucket/key'"
        ));
    };
    if bucket.is_empty() {
        return refuse(format!("Bucket name cannot be empty in URL: '{url}'"));
    }
    if key.is_empty() {
        return refuse(format!("Key cannot be empty in URL: '{url}'"));
    }
    Ok((bucket, key))
}

/// Objects that wait to be moved into place.
struct Fetched {
    staged: Staged,
    root: PathBuf,
    /// Relative to the root.
    files: Vec<PathBuf>,
}

/// One file on its way to the thread that writes it.
struct Arriving {
    name: String,
    modified: std::time::SystemTime,
    content: UploadReader,
}

/// What there is at a key.
enum Content {
    Whole(Bytes),
    /// More than is fetched at once.
    Large,
    /// The mark of an empty folder: no bytes, under a key that ends with a slash.
    Mark,
}

/// What to fetch from where.
struct Fetch<'f> {
    store: AmazonS3,
    bucket: &'f str,
    key: &'f str,
    progress: &'f Progress,
}

impl Fetch<'_> {
    async fn stage(self, environment: &Environment, place: Place) -> Result<Fetched, ApiError> {
        let objects = self.objects().await?;
        let names = objects.iter().map(|(name, _)| place.inner.join(name));
        let placed = names.collect();
        let root = place.root.clone();
        if objects.is_empty() {
            tracing::warn!(bucket = self.bucket, key = self.key, "no objects to fetch");
        }
        let limits = environment.settings.data.archive.clone();
        let (files, mut arriving) = mpsc::channel::<Arriving>(1);
        let writing = tokio::task::spawn_blocking(move || {
            let mut staging = Staging::new(&place.root, &place.inner, &limits)?;
            while let Some(mut file) = arriving.blocking_recv() {
                let modified = Some(file.modified);
                staging.file(file.name.as_bytes(), 0o644, modified, &mut file.content)?;
            }
            Ok(staging.finish())
        });
        let fetched = self.fetch(objects, files).await;
        let staged = writing
            .await
            .map_err(|error| ApiError::internal(format!("writing failed: {error}")))?;
        // Where both failed, the writer is why the fetching ended, unless it only lost its input.
        match (fetched, staged) {
            (Err(Some(error)), _) => Err(error),
            (_, Err(error)) => Err(unpack_error(&error)),
            (Err(None), Ok(_)) => Err(ApiError::internal("writing ended early")),
            (Ok(()), Ok(staged)) => Ok(Fetched {
                staged,
                root,
                files: placed,
            }),
        }
    }

    /// The objects with the names of their files.
    async fn objects(&self) -> Result<Vec<(String, ObjectMeta)>, ApiError> {
        let bare = self.key.trim_end_matches('/');
        let root = Path::parse(bare).map_err(|error| {
            ApiError::bad_request(format!("Unsafe path detected: {bare}: {error}"))
        })?;
        let failed = |error: &object_store::Error| {
            // A key that is listed and cannot be the name of a file.
            if let object_store::Error::InvalidPath { source } = error {
                return ApiError::bad_request(format!(
                    "Unsafe path detected below s3://{}/{}: {source}",
                    self.bucket, self.key
                ));
            }
            ApiError::internal(format!(
                "S3 error accessing s3://{}/{}: {}",
                self.bucket,
                self.key,
                client::reason(error)
            ))
        };
        let mut objects = Vec::new();
        let listed: Vec<ObjectMeta> = self
            .store
            .list(Some(&root))
            .try_collect()
            .await
            .map_err(|error| failed(&error))?;
        let below = format!("{root}/");
        for meta in listed {
            if let Some(name) = meta.location.as_ref().strip_prefix(&below) {
                objects.push((name.to_owned(), meta));
            }
        }
        if objects.is_empty() && bare == self.key {
            match self.store.head(&root).await {
                Ok(meta) => {
                    let name = root.filename().unwrap_or(bare).to_owned();
                    objects.push((name, meta));
                }
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        objects.sort_by(|one, other| one.0.cmp(&other.0));
        // A file and the mark of a folder of the same name: the file comes first.
        objects.dedup_by(|one, other| one.0 == other.0);
        // Marks of directories are empty objects that have others below them.
        let directories: std::collections::HashSet<String> = objects
            .iter()
            .flat_map(|(name, _)| {
                name.match_indices('/')
                    .map(|(end, _)| name[..end].to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        objects.retain(|(name, meta)| meta.size > 0 || !directories.contains(name));
        Ok(objects)
    }

    /// Sends all objects to the writer in their order. `Err(None)` when that has ended.
    async fn fetch(
        &self,
        objects: Vec<(String, ObjectMeta)>,
        files: mpsc::Sender<Arriving>,
    ) -> Result<(), Option<ApiError>> {
        let mut contents = futures::stream::iter(objects)
            .map(|(name, meta)| async move {
                // Large ones are fetched when it is their turn.
                let content = if meta.size <= WHOLE {
                    self.whole(&meta).await?
                } else {
                    Content::Large
                };
                Ok::<_, ApiError>((name, meta, content))
            })
            .buffered(SIDE_BY_SIDE);
        while let Some(next) = contents.next().await {
            let (name, meta, content_found) = next.map_err(Some)?;
            if matches!(content_found, Content::Mark) {
                tracing::debug!(name, "the mark of an empty folder is passed over");
                continue;
            }
            let (sender, content) = transfer::upload();
            let file = Arriving {
                name,
                modified: meta.last_modified.into(),
                content,
            };
            files.send(file).await.map_err(|_| None)?;
            match content_found {
                Content::Whole(bytes) => {
                    self.progress.bytes(bytes.len() as u64);
                    if !sender.send(bytes).await {
                        return Err(None);
                    }
                }
                Content::Large => self.pieces(&meta, &sender).await?,
                Content::Mark => {}
            }
            sender.end().await;
            self.progress.object();
        }
        Ok(())
    }

    async fn whole(&self, meta: &ObjectMeta) -> Result<Content, ApiError> {
        let got = match self.store.get(&meta.location).await {
            Ok(got) => got.bytes().await.map(Content::Whole),
            // The name without the slash at its end, which the list leaves out.
            Err(object_store::Error::NotFound { .. }) if meta.size == 0 => Ok(Content::Mark),
            Err(error) => Err(error),
        };
        got.map_err(|error| self.lost(meta, &error))
    }

    /// The content piece by piece; a connection that breaks in the middle is taken up again there by
    /// the client.
    async fn pieces(
        &self,
        meta: &ObjectMeta,
        sender: &UploadSender,
    ) -> Result<(), Option<ApiError>> {
        let got = self.store.get(&meta.location).await;
        let got = got.map_err(|error| Some(self.lost(meta, &error)))?;
        let mut pieces = got.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Some(self.lost(meta, &error)))?;
            self.progress.bytes(piece.len() as u64);
            if !sender.send(piece).await {
                return Err(None);
            }
        }
        Ok(())
    }

    fn lost(&self, meta: &ObjectMeta, error: &object_store::Error) -> ApiError {
        ApiError::internal(format!(
            "Failed to download from s3://{}/{}: {}",
            self.bucket,
            meta.location,
            client::reason(error)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn urls() {
        assert_eq!(split("s3://b/a/c").unwrap(), ("b", "a/c"));
        for wrong in ["http://b/a", "s3://b", "s3:///a", "s3://b/", ""] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
