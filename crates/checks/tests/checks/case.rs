//! What tests check: two worlds, a trajectory, a verifier.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eval::error::{ErrorKind, EvalError};
use eval::{IsolationRule, result_of};
use evidence::{Evidence, EvidenceLimits};
use formats::grades::VerifierResult;
use serde_json::{Value, json};

/// A verifier to be judged.
pub(crate) struct Case {
    folder: tempfile::TempDir,
    pub(crate) verifiers: Vec<Value>,
    pub(crate) configs: Vec<Value>,
    pub(crate) messages: Value,
    pub(crate) task_folder: Option<PathBuf>,
    pub(crate) program_path: OsString,
    pub(crate) isolation: IsolationRule,
    goldens: Vec<PathBuf>,
    /// Further keys of the trajectory.
    pub(crate) trajectory: Value,
}

impl Case {
    /// Two empty worlds and a short conversation that ends with `answer`.
    pub(crate) fn new(answer: &str) -> Self {
        let case = Self {
            folder: tempfile::tempdir().unwrap(),
            verifiers: Vec::new(),
            configs: Vec::new(),
            messages: json!([
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Do the task."},
                {"role": "assistant", "content": answer},
            ]),
            task_folder: None,
            program_path: "/usr/local/bin:/usr/bin:/bin".into(),
            isolation: IsolationRule::default(),
            goldens: Vec::new(),
            trajectory: json!({}),
        };
        case.worlds(&[], &[]);
        case
    }

    /// Writes the worlds: paths below `filesystem/` and contents, before and after.
    pub(crate) fn worlds(&self, before: &[(&str, &[u8])], after: &[(&str, &[u8])]) {
        write(&self.path("initial"), before);
        write(&self.path("final"), after);
    }

    /// Adds a correct end state.
    pub(crate) fn golden(&mut self, files: &[(&str, &[u8])]) {
        let path = self.path(&format!("golden{}", self.goldens.len()));
        write(&path, files);
        self.goldens.push(path);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds a verifier of the eval `eval`.
    pub(crate) fn verifier(&mut self, eval: &str, values: Value) {
        if !self.configs.iter().any(|c| c["eval_config_id"] == eval) {
            self.configs.push(json!({
                "eval_config_id": eval, "eval_config_name": eval,
                "eval_defn_id": eval, "eval_config_values": {},
            }));
        }
        self.verifiers.push(json!({
            "verifier_id": "v", "world_id": null, "task_id": "t",
            "eval_config_id": eval, "verifier_values": values, "verifier_index": 1,
        }));
    }

    /// Judges the one verifier of this case.
    pub(crate) async fn result(&self) -> VerifierResult {
        let [verifier] = self.verifiers.as_slice() else {
            panic!("{} verifiers", self.verifiers.len());
        };
        let id = &verifier["eval_config_id"];
        let config = self.configs.iter().find(|c| c["eval_config_id"] == *id);
        let config = config.unwrap().clone();
        let eval = checks::all()
            .into_iter()
            .find(|eval| config["eval_defn_id"] == eval.id())
            .unwrap();
        let case = eval::Case {
            verifier: serde_json::from_value(verifier.clone()).unwrap(),
            eval_config: serde_json::from_value(config).unwrap(),
            evidence: Arc::new(self.evidence()),
            dependencies: Vec::new(),
            judge: Err(EvalError::new(
                ErrorKind::JudgeAuth,
                "a check asks no judge",
            )),
            task_folder: self.task_folder.clone(),
            program_path: self.program_path.clone(),
            isolation: self.isolation,
        };
        let verifier = case.verifier.clone();
        result_of(&verifier, eval.run(case).await)
    }

    fn evidence(&self) -> Evidence {
        let mut trajectory = json!({
            "messages": self.messages, "status": "completed", "time_elapsed": 1.0,
        });
        for (key, value) in self.trajectory.as_object().unwrap() {
            trajectory[key] = value.clone();
        }
        let mut limits = EvidenceLimits::default();
        limits.extract.program_path.clone_from(&self.program_path);
        limits.extract.isolation = self.isolation;
        Evidence::new(
            serde_json::from_value(trajectory).unwrap(),
            self.path("initial"),
            self.path("final"),
            limits,
        )
        .with_goldens(self.goldens.clone())
    }
}

/// A world as a folder in which only these files are.
fn write(world: &Path, files: &[(&str, &[u8])]) {
    if world.exists() {
        std::fs::remove_dir_all(world).unwrap();
    }
    std::fs::create_dir_all(world.join("filesystem")).unwrap();
    for (name, content) in files {
        let is_of_an_app = name.starts_with(".apps_data/");
        let subsystem = if is_of_an_app { "" } else { "filesystem" };
        let path = world.join(subsystem).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}
