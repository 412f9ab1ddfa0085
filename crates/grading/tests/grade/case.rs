//! What tests grade: two worlds, a trajectory, verifiers, a judge.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use formats::grades::{Grades, VerifierResult};
use grading::{GradeOptions, GradingInput, Registry};
use llm_client::{Models, RetryPolicy};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};
use tokio_util::sync::CancellationToken;

/// One grading run to be.
pub(crate) struct Case {
    folder: tempfile::TempDir,
    pub(crate) verifiers: Vec<Value>,
    pub(crate) configs: Vec<Value>,
    pub(crate) messages: Value,
    pub(crate) settings: Value,
    pub(crate) scoring: Value,
    pub(crate) options: GradeOptions,
    pub(crate) registry: Registry,
    pub(crate) goldens: Vec<PathBuf>,
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
            settings: json!({"llm_judge_model": "openai/judge"}),
            scoring: json!({
                "scoring_config_id": "s", "scoring_config_name": "s",
                "scoring_defn_id": "template", "scoring_config_values": {},
            }),
            options: GradeOptions::default(),
            registry: Registry::builtin(),
            goldens: Vec::new(),
            trajectory: json!({}),
        };
        case.worlds(&[], &[]);
        case
    }

    /// Writes the worlds: paths below `filesystem/` and contents, before and after.
    pub(crate) fn worlds(&self, before: &[(&str, &[u8])], after: &[(&str, &[u8])]) {
        zip(&self.path("initial.zip"), before);
        zip(&self.path("final.zip"), after);
    }

    /// Adds a correct end state.
    pub(crate) fn golden(&mut self, files: &[(&str, &[u8])]) {
        let path = self.path(&format!("golden{}.zip", self.goldens.len()));
        zip(&path, files);
        self.goldens.push(path);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds a verifier of the eval `eval`; its id is `v1`, `v2`, …
    pub(crate) fn verifier(&mut self, eval: &str, values: Value) -> &mut Value {
        let number = self.verifiers.len() + 1;
        if !self.configs.iter().any(|c| c["eval_config_id"] == eval) {
            self.configs.push(json!({
                "eval_config_id": eval, "eval_config_name": eval,
                "eval_defn_id": eval, "eval_config_values": {},
            }));
        }
        self.verifiers.push(json!({
            "verifier_id": format!("v{number}"), "world_id": null, "task_id": "t",
            "eval_config_id": eval, "verifier_values": values, "verifier_index": number,
        }));
        self.verifiers.last_mut().unwrap()
    }

    pub(crate) fn input(&self) -> GradingInput {
        GradingInput {
            grading_run_id: "gr_test".into(),
            trajectory_id: "traj_test".into(),
            initial_snapshot: self.path("initial.zip"),
            final_snapshot: self.path("final.zip"),
            golden_snapshots: self.goldens.clone(),
            trajectory: serde_json::from_value(self.whole_trajectory()).unwrap(),
            settings: serde_json::from_value(self.settings.clone()).unwrap(),
            verifiers: serde_json::from_value(Value::Array(self.verifiers.clone())).unwrap(),
            eval_configs: serde_json::from_value(Value::Array(self.configs.clone())).unwrap(),
            scoring: serde_json::from_value(self.scoring.clone()).unwrap(),
        }
    }

    fn whole_trajectory(&self) -> Value {
        let mut trajectory = json!({
            "messages": self.messages, "status": "completed", "time_elapsed": 1.0,
        });
        for (key, value) in self.trajectory.as_object().unwrap() {
            trajectory[key] = value.clone();
        }
        trajectory
    }

    /// Grades without a judge: one that is asked cannot be reached.
    pub(crate) async fn grade(&self) -> Grades {
        self.grade_by(&Models::new(|_| None), &|_| {}).await
    }

    /// Grades with the judge behind `stub`.
    pub(crate) async fn grade_with(&self, stub: &OpenAiStub) -> Grades {
        self.grade_by(&models(stub), &|_| {}).await
    }

    pub(crate) async fn grade_by(
        &self,
        models: &Models,
        on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
    ) -> Grades {
        grading::grade_with(
            &self.registry,
            self.input(),
            models,
            self.options.clone(),
            CancellationToken::new(),
            on_result,
        )
        .await
    }

    /// Grades the one verifier of this case and returns its result.
    pub(crate) async fn result(&self) -> VerifierResult {
        let mut grades = self.grade().await;
        assert_eq!(grades.verifier_results.len(), 1);
        grades.verifier_results.remove(0)
    }
}

/// A judge that gives `turns`.
pub(crate) async fn stub(turns: impl IntoIterator<Item = Turn>) -> OpenAiStub {
    OpenAiStub::start(Script::new(turns)).await.unwrap()
}

/// A reply with a verdict.
pub(crate) fn verdict(met: bool, rationale: &str) -> Turn {
    Turn::says(json!({"rationale": rationale, "is_criteria_true": met}).to_string())
}

/// Models that are answered by `stub`, without waiting between attempts.
pub(crate) fn models(stub: &OpenAiStub) -> Models {
    let (base, key) = (stub.base_url(), stub.key().to_owned());
    Models::new(move |name| match name {
        "OPENAI_BASE_URL" => Some(base.clone()),
        "OPENAI_API_KEY" => Some(key.clone()),
        _ => None,
    })
    .with_retry(RetryPolicy {
        attempts: 2,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    })
}

fn zip(path: &Path, files: &[(&str, &[u8])]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    zip.add_directory("filesystem", options).unwrap();
    for (name, content) in files {
        let name = if name.starts_with(".apps_data/") {
            (*name).to_owned()
        } else {
            format!("filesystem/{name}")
        };
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap();
}
