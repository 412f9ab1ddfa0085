//! How the program starts, what it announces, and how it ends.

use std::{
    fs,
    io::{Read, Write},
    process::Stdio,
    time::{Duration, Instant},
};

use rmcp::{ServiceError, model::CallToolRequestParams};
use serde_json::{Value, json};

use crate::served::{Served, folder, program};

const READING: [&str; 6] = [
    "list_files",
    "read_image_file",
    "read_text_file",
    "search_files",
    "get_file_metadata",
    "get_directory_tree",
];
const WRITING: [&str; 5] = [
    "write_file",
    "create_directory",
    "edit_file",
    "move_file",
    "delete_file",
];

#[tokio::test]
async fn reads_only_unless_told_otherwise() {
    let served = Served::with(&[]).await;
    assert_eq!(served.tool_names().await, READING);
    let info = served.client.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "filesystem-server");
    assert!(info.instructions.is_some());
    for tool in ["write_file", "no_such_tool"] {
        let error = served
            .client
            .call_tool(CallToolRequestParams::new(tool))
            .await
            .unwrap_err();
        let ServiceError::McpError(error) = error else {
            panic!("{error}")
        };
        assert_eq!(error.code.0, -32602);
        assert!(
            error
                .message
                .starts_with(&format!("Not found: Unknown tool: '{tool}'")),
            "{}",
            error.message
        );
    }
    let both: Vec<&str> = READING.into_iter().chain(WRITING).collect();
    assert_eq!(Served::with(&["--writable"]).await.tool_names().await, both);
    for (value, wanted) in [
        ("true", &both[..]),
        ("1", &both),
        ("false", &READING),
        ("", &READING),
    ] {
        let folder = folder();
        let mut command = program();
        command
            .env("FILESYSTEM_WRITABLE", value)
            .arg("--root")
            .arg(folder.path().join("world"));
        assert_eq!(
            Served::started(folder, command).await.tool_names().await,
            wanted,
            "{value}"
        );
    }
}

#[tokio::test]
async fn the_root_is_the_first_that_is_given() {
    let variables = ["APP_FS_ROOT", "FILESYSTEM_ROOT"];
    for (flag, given, wanted) in [
        (Some("flag"), vec!["APP_FS_ROOT", "FILESYSTEM_ROOT"], "flag"),
        (None, vec!["APP_FS_ROOT", "FILESYSTEM_ROOT"], "APP_FS_ROOT"),
        (None, vec!["FILESYSTEM_ROOT"], "FILESYSTEM_ROOT"),
    ] {
        let folder = folder();
        let mut command = program();
        for name in ["flag", "APP_FS_ROOT", "FILESYSTEM_ROOT"] {
            let root = folder.path().join(name);
            fs::create_dir(&root).unwrap();
            fs::write(root.join(format!("{name}.txt")), "").unwrap();
            if given.contains(&name) && variables.contains(&name) {
                command.env(name, root);
            }
        }
        if let Some(flag) = flag {
            command.arg("--root").arg(folder.path().join(flag));
        }
        let served = Served::started(folder, command).await;
        assert_eq!(
            served.text("list_files", json!({})).await,
            format!("'{wanted}.txt' (text/plain file) 0 bytes\n")
        );
    }
}

#[tokio::test]
async fn tools_say_what_they_do_to_the_world() {
    let served = Served::with(&["--writable"]).await;
    for tool in served.client.list_all_tools().await.unwrap() {
        let hints = serde_json::to_value(tool.annotations.unwrap()).unwrap();
        let wanted = match tool.name.as_ref() {
            "write_file" => {
                json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false})
            }
            "create_directory" => {
                json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
            }
            "edit_file" | "move_file" | "delete_file" => {
                json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false})
            }
            _ => json!({"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}),
        };
        assert_eq!(hints, wanted, "{}", tool.name);
        let has_output_schema = tool.output_schema.is_some();
        assert_eq!(has_output_schema, tool.name != "read_image_file");
    }
}

#[tokio::test]
async fn schemas_are_flat() {
    let served = Served::with(&["--writable"]).await;
    for tool in served.client.list_all_tools().await.unwrap() {
        let schema = tool.schema_as_json_value();
        assert_eq!(schema["type"], "object");
        for key in schema.as_object().unwrap().keys() {
            assert!(
                ["type", "properties", "required"].contains(&key.as_str()),
                "{key}"
            );
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().unwrap() {
            for key in property.as_object().unwrap().keys() {
                assert!(
                    ["type", "description", "nullable"].contains(&key.as_str()),
                    "{key}"
                );
            }
            let optional = !required.contains(&Value::from(name.as_str()));
            assert_eq!(property.get("nullable").is_some(), optional);
            assert_eq!(
                property["description"]
                    .as_str()
                    .unwrap()
                    .starts_with("(Optional) "),
                optional
            );
        }
    }
}

#[test]
fn answers_what_was_asked_and_ends_when_stdin_closes() {
    let folder = folder();
    fs::write(folder.path().join("world/a.txt"), "x").unwrap();
    let mut child = program()
        .arg("--root")
        .arg(folder.path().join("world"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05",
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": {"name": "list_files"}}),
    ];
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    let answers: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2, "stdout is protocol only: {output}");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answers[1]["id"], "two");
    assert_eq!(
        answers[1]["result"]["structuredContent"]["result"],
        "'a.txt' (text/plain file) 1 bytes\n"
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn ends_at_once_when_stdin_is_closed_from_the_start() {
    let folder = folder();
    let started = Instant::now();
    let mut command = program();
    command
        .arg("--root")
        .arg(folder.path().join("world"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty());
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_wrong_start_is_one_clear_message() {
    for (arguments, message) in [
        (
            vec!["--root", "/no/such/root"],
            "cannot open root directory /no/such/root: No such file or directory",
        ),
        (
            vec!["--root", "/dev/null"],
            "cannot open root directory /dev/null: Not a directory",
        ),
        (vec!["--wirtable"], "unexpected argument '--wirtable'"),
        (
            vec!["--max-text-bytes", "many"],
            "invalid value 'many' for '--max-text-bytes",
        ),
    ] {
        let output = program()
            .args(&arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn a_world_replaced_as_a_whole_is_seen() {
    let served = Served::with(&[]).await;
    served.put("old.txt", "");
    assert_eq!(served.listed("/").await.len(), 1);
    fs::rename(served.world(), served.folder.path().join("before")).unwrap();
    fs::create_dir(served.world()).unwrap();
    served.put("new.txt", "");
    assert_eq!(
        served.listed("/").await,
        ["'new.txt' (text/plain file) 0 bytes"]
    );
}

#[tokio::test]
async fn physical_paths_on_request() {
    let folder = folder();
    let mut command = program();
    let root = folder.path().join("world").canonicalize().unwrap();
    command
        .env("EXPOSE_PHYSICAL_PATHS", "yes")
        .arg("--root")
        .arg(&root);
    let served = Served::started(folder, command).await;
    served.put("docs/a.txt", "");
    let root = root.display();
    assert_eq!(
        served.text("search_files", json!({"pattern": "a.*"})).await,
        format!("Found 1 file(s) matching 'a.*':\n{root}/docs/a.txt")
    );
    assert_eq!(
        served
            .text("get_directory_tree", json!({"path": "/docs"}))
            .await,
        format!("{root}/docs/\n└── a.txt")
    );
    assert_eq!(
        served
            .text("get_directory_tree", json!({"max_depth": 1}))
            .await,
        format!("{root}/\n└── docs/")
    );
}
