//! The scripts of the example tasks, played against the real server: every call succeeds, and the worlds end up as the tasks
//! want them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use formats::task::{EvalConfigs, GradingSettings, OrchestratorConfig, ScoringConfig, Verifiers};
use rmcp::model::CallToolRequestParams;
use serde_json::Value;

use crate::served::{Served, folder_of};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name)
}

fn read<T: serde::de::DeserializeOwned>(task: &Path, file: &str) -> T {
    serde_json::from_slice(&fs::read(task.join(file)).unwrap())
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Serves an example's world with the flags of its own configuration.
async fn served(task: &Path) -> Served {
    let servers: Value = read(task, "mcp_config.json");
    let server = &servers["mcpServers"]["filesystem_server"];
    assert_eq!(server["command"], "filesystem-server");
    let flags: Vec<&str> = server["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|flag| flag.as_str().unwrap())
        .collect();
    let archive = task.join("original_snapshot.zip");
    Served::of(folder_of(&archive), &flags).await
}

/// Plays the calls that go to the server, in order; returns how often each tool was called.
async fn play(served: &Served, task: &Path) -> BTreeMap<String, usize> {
    let script: Value = read(task, "agent_script.json");
    let mut calls = BTreeMap::new();
    for call in script["turns"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|turn| turn["tool_calls"].as_array())
        .flatten()
    {
        let name = call["name"].as_str().unwrap();
        *calls.entry(name.to_owned()).or_default() += 1;
        // The agent's own tools.
        if name.starts_with("toolbelt_") || name == "todo_write" || name == "final_answer" {
            continue;
        }
        let arguments = call["arguments"].as_object().unwrap().clone();
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let result = served.client.call_tool(request).await.unwrap();
        let text = result.content[0]
            .as_text()
            .map_or("", |text| text.text.as_str());
        assert_eq!(result.is_error, Some(false), "{call}: {text}");
        assert!(!text.starts_with('['), "{call}: {text}");
    }
    calls
}

/// All files of a world with their content.
fn contents(world: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![world.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let name = path
                    .strip_prefix(world)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn check_documents(task: &Path) {
    let verifiers: Verifiers = read(task, "verifiers.json");
    let evals: EvalConfigs = read(task, "eval_configs.json");
    let _: ScoringConfig = read(task, "scoring_config.json");
    for verifier in &verifiers {
        let known = evals
            .iter()
            .any(|eval| eval.eval_config_id == verifier.eval_config_id);
        assert!(known, "{} has no eval", verifier.verifier_id);
    }
    let orchestrator: OrchestratorConfig = read(task, "orchestrator_config.json");
    let settings: GradingSettings = read(task, "grading_settings.json");
    for model in [orchestrator.model, settings.llm_judge_model] {
        let script = model.strip_prefix("scripted/").unwrap();
        let _: Value = read(task, script);
    }
}

#[tokio::test]
async fn simple_task_is_a_search_among_pictures() {
    let task = example("simple_task");
    check_documents(&task);
    let served = served(&task).await;
    let before = contents(&served.world());
    let calls = play(&served, &task).await;
    assert_eq!(calls["read_image_file"], 5);
    assert_eq!(contents(&served.world()), before, "looking changes nothing");
    assert_eq!(before.len(), 5);
    for (name, picture) in before {
        assert!(
            picture.starts_with(b"\x89PNG") && picture.len() < 15_000,
            "{name}"
        );
    }
}

#[tokio::test]
async fn edit_files_changes_exactly_what_was_asked_for() {
    let task = example("edit_files");
    check_documents(&task);
    let served = served(&task).await;
    let before = contents(&served.world());
    let calls = play(&served, &task).await;
    for tool in [
        "write_file",
        "edit_file",
        "move_file",
        "delete_file",
        "create_directory",
    ] {
        assert!(calls.contains_key(tool), "{tool}");
    }
    let mut wanted = before;
    wanted.remove("drafts/offer_halden_2024.md").unwrap();
    let plan = wanted.remove("inbox/floor_plan.txt").unwrap();
    wanted.insert("archive/2025/floor_plan.txt".to_owned(), plan);
    let offer = wanted.get_mut("drafts/offer_halden.md").unwrap();
    *offer = String::from_utf8(offer.clone())
        .unwrap()
        .replace("TO BE SET", "4850 EUR")
        .into_bytes();
    let mut after = contents(&served.world());
    let report = after.remove("reports/expenses_2025_q1.md").unwrap();
    assert_eq!(after, wanted);

    // The totals, worked out from the table.
    let mut totals = BTreeMap::<String, u32>::new();
    let expenses = String::from_utf8(wanted["finance/expenses_2025_q1.csv"].clone()).unwrap();
    for line in expenses.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let cents: u32 = fields[3].replace('.', "").parse().unwrap();
        for key in [fields[1], "all"] {
            *totals.entry(key.to_owned()).or_default() += cents;
        }
    }
    let report = String::from_utf8(report).unwrap();
    for (category, cents) in totals {
        let row = report
            .lines()
            .find(|line| line.starts_with(&format!("| {category} |")))
            .unwrap();
        assert!(
            row.ends_with(&format!("| {}.{:02} |", cents / 100, cents % 100)),
            "{row}"
        );
    }
}

#[test]
fn worlds_are_what_their_scripts_make() {
    for task in ["simple_task", "edit_files"] {
        let output = Command::new("python3")
            .arg("-B")
            .arg(example(task).join("make_world.py"))
            .arg("--check")
            .output();
        match output {
            Ok(output) => assert!(
                output.status.success(),
                "{task}: {}",
                String::from_utf8_lossy(&output.stderr)
            ),
            Err(error) => {
                let _ = testkit::available(&format!("python3 ({error})"), false);
            }
        }
    }
}
