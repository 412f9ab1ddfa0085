//! The example tasks of this repository can be graded as they stand.

use std::ffi::OsStr;
use std::path::Path;

use formats::document::read;
use formats::task::{GradingSettings, ScoringConfig, file};
use grading::{GradingPlan, Registry, validate};
use llm_client::Models;

#[test]
fn the_plans_of_all_example_tasks_are_without_problems() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let task = entry.unwrap().path();
        if !task.join(file::VERIFIERS).is_file() {
            continue;
        }
        seen += 1;
        let verifiers: Vec<_> = read("verifiers", &task.join(file::VERIFIERS)).unwrap();
        let configs: Vec<_> = read("eval configs", &task.join(file::EVAL_CONFIGS)).unwrap();
        let scoring: ScoringConfig = read("scoring", &task.join(file::SCORING_CONFIG)).unwrap();
        let settings: GradingSettings =
            read("settings", &task.join(file::GRADING_SETTINGS)).unwrap();
        let plan = GradingPlan {
            settings: Some(&settings),
            verifiers: &verifiers,
            eval_configs: &configs,
            scoring: &scoring,
            program_path: OsStr::new("/usr/bin"),
        };
        let models = Models::new(|_| None).with_script_folder(&task);
        match validate(&Registry::builtin(), plan, &models) {
            Ok(validated) => assert_eq!(validated.warnings, [], "{}", task.display()),
            Err(problems) => panic!("{}: {problems:#?}", task.display()),
        }
    }
    assert!(seen >= 2, "{seen}");
}
