//! What the reference's own server said to the same calls, where its recording lies beside this workspace.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use base64::Engine as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use serde_json::Value;

use crate::served::{Served, folder, folder_of};

fn golden() -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let golden = shared.join("golden");
    if golden.is_dir() {
        return Some(golden);
    }
    eprintln!(
        "SKIPPED: no recordings of the reference at {}",
        golden.display()
    );
    None
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The reference's example world.
async fn animals(golden: &Path) -> Served {
    let archive = golden.join("simple_task/original_snapshot.zip");
    Served::of(folder_of(&archive), &[]).await
}

/// The last request of a run holds all calls and their results.
fn last_request(golden: &Path, run: &str) -> Value {
    let folder = golden.join("reference-run").join(run).join("llm_requests");
    let last = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .max()
        .unwrap();
    json(&last)["body"].clone()
}

#[tokio::test]
async fn tools_have_the_same_names_parameters_and_types() {
    let Some(golden) = golden() else { return };
    let served = animals(&golden).await;
    let ours = served.client.list_all_tools().await.unwrap();
    let theirs = last_request(&golden, "loop")["tools"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(ours.len(), theirs.len());
    for (own, reference) in ours.iter().zip(&theirs) {
        let reference = &reference["function"];
        assert_eq!(own.name, reference["name"].as_str().unwrap());
        let own = own.schema_as_json_value();
        let shape = |schema: &Value| -> BTreeMap<String, (Value, bool)> {
            let properties = schema["properties"].as_object().unwrap();
            let shape = |property: &Value| {
                (
                    property["type"].clone(),
                    property["nullable"] == Value::Bool(true),
                )
            };
            properties
                .iter()
                .map(|(name, property)| (name.clone(), shape(property)))
                .collect()
        };
        assert_eq!(
            shape(&own),
            shape(&reference["parameters"]),
            "{}",
            reference["name"]
        );
        assert_eq!(own.get("required"), reference["parameters"].get("required"));
    }
}

fn texts(result: &CallToolResult) -> String {
    result
        .content
        .iter()
        .filter_map(|block| block.as_text())
        .map(|text| text.text.as_str())
        .collect()
}

/// Directory order is not part of the contract.
fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn calls_have_the_same_results() {
    let Some(golden) = golden() else { return };
    let served = animals(&golden).await;
    let names = served.tool_names().await;
    let mut compared = BTreeMap::<String, usize>::new();
    for run in ["loop", "react", "errors"] {
        let body = last_request(&golden, run);
        let messages = body["messages"].as_array().unwrap();
        let mut pictures: Vec<&str> = messages
            .iter()
            .filter_map(|message| message["content"][0]["image_url"]["url"].as_str())
            .filter_map(|url| url.split_once("base64,").map(|(_, data)| data))
            .collect();
        pictures.reverse();
        for call in messages
            .iter()
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten()
        {
            let name = call["function"]["name"].as_str().unwrap();
            // Malformed arguments are the agent's matter: the reference's agent made `{}` of them.
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments = serde_json::from_str(arguments).unwrap_or_default();
            if !names.iter().any(|known| known == name) {
                continue;
            }
            let answer = messages
                .iter()
                .find(|message| message["tool_call_id"] == call["id"])
                .unwrap();
            let wanted = answer["content"][0]["text"].as_str().unwrap();
            if wanted.contains("toolbelt") {
                continue;
            }
            let request = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
            let result = served.client.call_tool(request).await.unwrap();
            if let Some(ContentBlock::Image(image)) = result.content.first() {
                let decode = |data: &str| {
                    base64::engine::general_purpose::STANDARD
                        .decode(data)
                        .unwrap()
                };
                assert!(
                    decode(&image.data) == decode(pictures.pop().unwrap()),
                    "{run}: another picture"
                );
                // Theirs says image/png, by the name; the content is JPEG.
                assert_eq!(image.mime_type, "image/jpeg");
            } else {
                assert_eq!(
                    sorted_lines(&texts(&result)),
                    sorted_lines(wanted),
                    "{run}: {name}"
                );
            }
            *compared.entry(name.to_owned()).or_default() += 1;
        }
    }
    assert!(
        compared["list_files"] >= 10 && compared["read_image_file"] >= 3,
        "{compared:?}"
    );
}

/// The Python SDK's client talks to the server as any other.
#[test]
fn the_python_client_understands_it() {
    let has_client = std::process::Command::new("python3")
        .args(["-c", "import mcp"])
        .output();
    let has_client = has_client.is_ok_and(|output| output.status.success());
    if !testkit::available("the Python package `mcp`", has_client) {
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("world/a.txt"), "hello").unwrap();
    fs::write(folder.path().join("world/p.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/python_client.py");
    let output = std::process::Command::new("python3")
        .arg(script)
        .arg(crate::served::PROGRAM)
        .arg(folder.path().join("world"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
