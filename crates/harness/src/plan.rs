//! What a run is going to do, checked before anything starts.

use formats::Object;
use formats::agent::AgentConfig;
use formats::run::TaskRecord;
use formats::task::GradingSettings;
use grading::{GradingPlan, Place, Problem, Severity, Sources};
use llm_client::{Model, Models};

use crate::run::{RunRequest, Services, distinct_names};
use crate::task::{Task, TaskError};

/// One task with the models that will work on it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) task: Task,
    pub(crate) model: Model,
    pub(crate) extra_args: Object,
    /// Finds the judge; scripts are looked for in the task folder.
    pub(crate) models: Models,
    /// Likely mistakes that do not stand in the way.
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// The task as it stands in `run.json`.
    pub(crate) fn record(&self) -> Result<TaskRecord, TaskError> {
        Ok(TaskRecord {
            task: self.task.name.clone(),
            path: self
                .task
                .folder
                .canonicalize()
                .unwrap_or_else(|_| self.task.folder.clone())
                .display()
                .to_string(),
            sha256: self.task.hashes()?,
        })
    }
}

/// What a caller puts in the place of what the task says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overrides<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) judge_model: Option<&'a str>,
    pub(crate) agent: Option<&'a AgentConfig>,
}

/// Reads the tasks and checks agents, models, credentials, evals and scoring methods.
pub(crate) fn plan(request: &RunRequest, services: &Services) -> Result<Vec<Plan>, TaskError> {
    let overrides = Overrides {
        model: request.model.as_deref(),
        judge_model: request.judge_model.as_deref(),
        agent: request.agent.as_ref(),
    };
    let mut problems = Vec::new();
    let mut plans = Vec::new();
    if request.tasks.is_empty() {
        problems.push("no task is given".to_owned());
    }
    for folder in &request.tasks {
        match Task::load(folder).and_then(|task| plan_task(task, overrides, services)) {
            Ok(plan) => plans.push(plan),
            Err(error) => problems.extend(error.problems),
        }
    }
    if !problems.is_empty() {
        return Err(TaskError { problems });
    }
    distinct_names(plans.iter().map(|plan| plan.task.name.as_str()))?;
    Ok(plans)
}

/// Checks one task folder as a run would and returns the likely mistakes that do not stand in the
/// way.
///
/// # Errors
/// [`TaskError`] with everything that would keep it from running.
pub fn check(folder: &std::path::Path, services: &Services) -> Result<Vec<String>, TaskError> {
    Ok(unchanged(folder, services)?.warnings)
}

/// The plan of a task as its files say.
pub(crate) fn unchanged(folder: &std::path::Path, services: &Services) -> Result<Plan, TaskError> {
    let nothing = Overrides {
        model: None,
        judge_model: None,
        agent: None,
    };
    plan_task(Task::load(folder)?, nothing, services)
}

/// Checks one task.
pub(crate) fn plan_task(
    mut task: Task,
    overrides: Overrides<'_>,
    services: &Services,
) -> Result<Plan, TaskError> {
    let place = task.folder.display().to_string();
    let at = |what: String| format!("task `{place}`: {what}");
    let mut problems = Vec::new();

    if let Some(agent) = overrides.agent {
        task.agent = agent.clone();
    }
    let mut unusual = Vec::new();
    match services.agents.resolve(&task.agent) {
        Ok(agent) => unusual.extend(agent.warnings().iter().cloned().map(at)),
        Err(error) => problems.push(at(error.to_string())),
    }
    if let Some(judge) = overrides.judge_model {
        replace_judge(&mut task, judge);
    }
    let models = services.models.clone().with_script_folder(&task.folder);
    let extra_args = task
        .orchestrator
        .as_ref()
        .and_then(|orchestrator| orchestrator.extra_args.clone())
        .unwrap_or_default();
    let model = resolve_model(&task, overrides.model, &extra_args, &models)
        .map_err(|problem| problems.push(at(problem)))
        .ok();

    // Grading comes last; that it will be possible is known now.
    let grading = GradingPlan {
        settings: task.grading_settings.as_ref(),
        verifiers: &task.verifiers,
        eval_configs: &task.eval_configs,
        scoring: &task.scoring,
        program_path: &services.grading.program_path,
    };
    let told = |problems: &[Problem]| located(&task, problems, overrides);
    let mut warnings = match grading::validate(&services.registry, grading, &models) {
        Ok(validated) => {
            let mut warnings = told(&validated.warnings);
            if validated.uses_judge {
                warnings.extend(kinship(&task, overrides.model).map(at));
            }
            warnings
        }
        Err(found) => {
            let (errors, warnings): (Vec<_>, Vec<_>) = found
                .into_iter()
                .partition(|problem| problem.severity == Severity::Error);
            problems.extend(told(&errors));
            told(&warnings)
        }
    };
    warnings.extend(unusual);
    match model {
        Some(model) if problems.is_empty() => Ok(Plan {
            task,
            model,
            extra_args,
            models,
            warnings,
        }),
        _ => Err(TaskError { problems }),
    }
}

/// Each problem with the file and the line at which it stands, as far as a file of the task has it.
fn located(task: &Task, problems: &[Problem], overrides: Overrides<'_>) -> Vec<String> {
    if problems.is_empty() {
        return Vec::new();
    }
    let sources = Sources::of_task(&task.folder);
    let sentence = |problem: &Problem| {
        // A judge that the caller names stands in no file.
        let is_the_callers =
            problem.place == Place::GradingSettings && overrides.judge_model.is_some();
        match sources.place(problem).filter(|_| !is_the_callers) {
            Some((path, line)) => format!("`{}`, line {line}: {problem}", path.display()),
            None => format!("task `{}`: {problem}", task.folder.display()),
        }
    };
    problems.iter().map(sentence).collect()
}

/// Families of models, by words that stand in the names of their members.
const FAMILIES: [(&str, &[&str]); 8] = [
    ("Claude", &["claude"]),
    ("GPT", &["gpt-", "/o1", "/o3", "/o4"]),
    ("Gemini", &["gemini"]),
    ("Llama", &["llama-", "llama3", "llama4"]),
    ("Mistral", &["mistral", "magistral"]),
    ("Qwen", &["qwen", "qwq"]),
    ("DeepSeek", &["deepseek-"]),
    ("Grok", &["grok"]),
];

/// What there is to say where the judge is of the family of the model that it judges.
fn kinship(task: &Task, instead: Option<&str>) -> Option<String> {
    let named = task.orchestrator.as_ref().map(|one| one.model.as_str());
    let model = instead.or(named)?;
    let judge = &task.grading_settings.as_ref()?.llm_judge_model;
    let is_of = |name: &str, words: &[&str]| {
        let name = name.to_lowercase();
        words.iter().any(|word| name.contains(word))
    };
    let (family, _) = FAMILIES
        .iter()
        .find(|(_, words)| is_of(model, words) && is_of(judge, words))?;
    Some(format!(
        "the judge `{judge}` and the model `{model}` are both {family}: judges favour answers of \
         their own kind"
    ))
}

/// The model of the task, or the one that takes its place.
fn resolve_model(
    task: &Task,
    instead: Option<&str>,
    extra_args: &Object,
    models: &Models,
) -> Result<Model, String> {
    let named = task
        .orchestrator
        .as_ref()
        .map(|orchestrator| orchestrator.model.as_str());
    let Some(name) = instead.or(named) else {
        return Err(format!(
            "no model is named; give `--model provider/model` or a `{}`",
            formats::task::file::ORCHESTRATOR_CONFIG
        ));
    };
    models
        .resolve(name, extra_args)
        .map_err(|error| error.to_string())
}

fn replace_judge(task: &mut Task, judge: &str) {
    match &mut task.grading_settings {
        Some(settings) => judge.clone_into(&mut settings.llm_judge_model),
        None => {
            task.grading_settings = Some(GradingSettings::of(judge));
        }
    }
}
