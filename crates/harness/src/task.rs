//! A task folder, read and checked.

mod needs;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use formats::agent::AgentConfig;
use formats::apps::AppsConfig;
use formats::document::{self, DocumentError};
use formats::owner::Owner;
use formats::task::{
    EvalConfigs, GradingSettings, InitialMessages, OrchestratorConfig, SandboxConfig,
    ScoringConfig, Verifiers, file,
};
use sandbox::Needs;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// A task as its folder describes it, with defaults for the files that are absent.
#[derive(Debug, Clone)]
pub struct Task {
    /// The name of the folder; also the name of the task in a run folder.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The world before the agent works; absent: an empty world.
    pub original_snapshot: Option<PathBuf>,
    /// The conversation that the agent starts from.
    pub initial_messages: InitialMessages,
    /// The agent.
    pub agent: AgentConfig,
    /// The model; absent where the caller has to name one.
    pub orchestrator: Option<OrchestratorConfig>,
    /// The MCP servers.
    pub apps: AppsConfig,
    /// What is checked.
    pub verifiers: Verifiers,
    /// How it is checked.
    pub eval_configs: EvalConfigs,
    /// How the checks make one score.
    pub scoring: ScoringConfig,
    /// The judge; absent where no verifier needs one.
    pub grading_settings: Option<GradingSettings>,
    /// What its environment needs of the sandbox.
    pub needs: Needs,
}

/// Everything that is wrong with a task folder or a run request; nothing was started.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct TaskError {
    /// One sentence for each problem, naming the file, the rule and the value.
    pub problems: Vec<String>,
}

impl TaskError {
    /// One problem.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problems: vec![problem.into()],
        }
    }

    /// Always the configuration's.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        Owner::Configuration
    }
}

impl Task {
    /// Reads the task folder at `folder`.
    ///
    /// # Errors
    /// [`TaskError`] with all problems of the folder's files, not only the first one.
    pub fn load(folder: &Path) -> Result<Self, TaskError> {
        if !folder.is_dir() {
            return Err(TaskError::new(format!(
                "task `{}` is not a folder",
                folder.display()
            )));
        }
        let name = task_name(folder)?;
        let mut reader = Reader {
            folder,
            problems: Vec::new(),
        };
        let messages_path = folder.join(file::INITIAL_MESSAGES);
        let initial_messages = match document::read("initial messages", &messages_path) {
            Ok(messages) => messages,
            Err(error) => {
                reader.problems.push(error.to_string());
                InitialMessages::new()
            }
        };
        reader.check_messages(&messages_path, &initial_messages);
        let snapshot = folder.join(file::ORIGINAL_SNAPSHOT);
        let task = Self {
            name,
            original_snapshot: snapshot.exists().then_some(snapshot),
            agent: reader
                .optional("agent configuration", file::AGENT_CONFIG)
                .unwrap_or_default(),
            orchestrator: reader.optional("model configuration", file::ORCHESTRATOR_CONFIG),
            apps: reader
                .optional("MCP configuration", file::MCP_CONFIG)
                .unwrap_or_default(),
            verifiers: reader
                .optional("verifiers", file::VERIFIERS)
                .unwrap_or_default(),
            eval_configs: reader
                .optional("eval configurations", file::EVAL_CONFIGS)
                .unwrap_or_default(),
            scoring: reader
                .optional("scoring configuration", file::SCORING_CONFIG)
                .unwrap_or_default(),
            grading_settings: reader.optional("grading settings", file::GRADING_SETTINGS),
            needs: reader.needs(),
            folder: folder.to_owned(),
            initial_messages,
        };
        if reader.problems.is_empty() {
            Ok(task)
        } else {
            Err(TaskError {
                problems: reader.problems,
            })
        }
    }

    /// SHA-256 of every file that belongs to the task, by file name, in hexadecimal.
    ///
    /// # Errors
    /// [`TaskError`] naming the file that cannot be read.
    pub fn hashes(&self) -> Result<BTreeMap<String, String>, TaskError> {
        let cannot = |path: &Path, error: std::io::Error| {
            TaskError::new(format!("cannot read `{}`: {error}", path.display()))
        };
        let mut hashes = BTreeMap::new();
        let entries =
            std::fs::read_dir(&self.folder).map_err(|error| cannot(&self.folder, error))?;
        for entry in entries {
            let path = entry.map_err(|error| cannot(&self.folder, error))?.path();
            let is_part = path
                .extension()
                .is_some_and(|extension| extension == "json" || extension == "zip");
            if is_part && path.is_file() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let hash = sha256_of(&path).map_err(|error| cannot(&path, error))?;
                hashes.insert(name.into_owned(), hash);
            }
        }
        Ok(hashes)
    }
}

/// Reads the optional files of a task folder and collects what is wrong with them.
struct Reader<'a> {
    folder: &'a Path,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// The document in `name`, if the file exists and is valid.
    fn optional<T: DeserializeOwned>(&mut self, what: &'static str, name: &str) -> Option<T> {
        match document::read(what, &self.folder.join(name)) {
            Ok(document) => Some(document),
            Err(DocumentError::Read { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                None
            }
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        }
    }

    fn needs(&mut self) -> Needs {
        let config: SandboxConfig = self
            .optional("sandbox configuration", file::SANDBOX_CONFIG)
            .unwrap_or_default();
        needs::of(self.folder, &config).unwrap_or_else(|problems| {
            self.problems.extend(problems);
            Needs::default()
        })
    }

    fn check_messages(&mut self, path: &Path, messages: &InitialMessages) {
        for (index, message) in messages.iter().enumerate() {
            if let Err(error) = serde_json::from_value::<formats::chat::Message>(message.clone()) {
                self.problems.push(format!(
                    "initial messages `{}`, message {}: {error}",
                    path.display(),
                    index + 1
                ));
            }
        }
    }
}

fn task_name(folder: &Path) -> Result<String, TaskError> {
    let canonical = folder.canonicalize().map_err(|error| {
        TaskError::new(format!("cannot read task `{}`: {error}", folder.display()))
    })?;
    match canonical.file_name() {
        Some(name) => Ok(name.to_string_lossy().into_owned()),
        None => Err(TaskError::new(format!(
            "task `{}` has no name: give a folder other than the root",
            folder.display()
        ))),
    }
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn only_the_messages_are_required() {
        let folder = folder(&[(
            "initial_messages.json",
            r#"[{"role": "user", "content": "hello"}]"#,
        )]);
        let task = Task::load(folder.path()).unwrap();
        assert_eq!(task.agent.agent_config_id, "react_toolbelt_agent");
        assert_eq!(task.scoring.scoring_defn_id, "template");
        assert!(task.apps.mcp_servers.is_empty() && task.original_snapshot.is_none());
    }

    #[test]
    fn all_problems_are_told_at_once_with_file_and_place() {
        let folder = folder(&[
            ("initial_messages.json", r#"[{"content": "no role"}]"#),
            ("verifiers.json", "[\n  {\"verifier_id\": 7}\n]"),
            ("agent_config.json", "{"),
        ]);
        let error = Task::load(folder.path()).unwrap_err();
        assert_eq!(error.problems.len(), 3, "{error}");
        assert!(
            error.problems[0].contains("message 1: missing field `role`"),
            "{error}"
        );
        assert!(
            error.problems[1].contains("agent_config.json`, line 1"),
            "{error}"
        );
        assert!(
            error.problems[2].contains("verifiers.json`, line 2"),
            "{error}"
        );
    }

    #[test]
    fn hashes_cover_documents_and_world() {
        let folder = folder(&[
            ("initial_messages.json", "[]"),
            ("original_snapshot.zip", ""),
            ("README.md", "not part of the task"),
        ]);
        let hashes = Task::load(folder.path()).unwrap().hashes().unwrap();
        assert_eq!(hashes.len(), 2);
        // The digest of the empty string, from FIPS 180-4's test values.
        assert_eq!(
            hashes["original_snapshot.zip"],
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
