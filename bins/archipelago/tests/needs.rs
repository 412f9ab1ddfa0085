//! What a task asks of its sandbox, as a process and as a container; and servers in the layout of
//! the reference, started by its kind of configuration.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use formats::trajectory::Trajectory;
use program::{Ended, archipelago, read};
use serde_json::{Value, json};

/// The image with Python and uv, as `archipelago image build worlds` names it.
const WORLDS: &str = "archipelago-env-worlds";

/// A server without dependencies, with one tool that tells what it sees.
const SERVER: &str = r#"
import json, os, sys
from pathlib import Path

def look():
    world = Path("/filesystem/found.txt")
    world.write_text("by the server\n")
    try:
        Path(__file__).with_name("new").write_text("x")
        mount = "writable"
    except OSError:
        mount = "read-only"
    return f"the mount is {mount}, the world has {sorted(p.name for p in Path('/filesystem').iterdir())}"

ANSWERS = {
    "initialize": lambda p: {"protocolVersion": p["protocolVersion"], "capabilities": {"tools": {}},
                             "serverInfo": {"name": "look", "version": "1"}},
    "tools/list": lambda p: {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
    "tools/call": lambda p: {"content": [{"type": "text", "text": look()}]},
    "ping": lambda p: {},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = ANSWERS[message["method"]](message.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// Writes the documents of a task, by file name.
fn write(folder: &Path, documents: &[(&str, Value)]) {
    for (name, document) in documents {
        std::fs::write(folder.join(name), document.to_string()).unwrap();
    }
}

/// A task whose server comes from the task folder by a mount.
fn task(folder: &Path) {
    std::fs::create_dir(folder.join("servers")).unwrap();
    std::fs::write(folder.join("servers/look.py"), SERVER).unwrap();
    write(
        folder,
        &[
            (
                "initial_messages.json",
                json!([{"role": "user", "content": "Look around."}]),
            ),
            (
                "agent_config.json",
                json!({
                "agent_config_id": "loop_agent", "agent_name": "Loop", "agent_config_values": {}}),
            ),
            (
                "orchestrator_config.json",
                json!({"model": "scripted/script.json"}),
            ),
            (
                "script.json",
                json!({"turns": [
                {"tool_calls": [{"name": "look", "arguments": {}}]}, {"content": "Seen."}]}),
            ),
            (
                "mcp_config.json",
                json!({"mcpServers": {"look": {
                "transport": "stdio", "command": "python3",
                "args": ["/app/mcp_servers/look.py"], "cwd": "/filesystem"}}}),
            ),
            (
                "sandbox_config.json",
                json!({
                "image": WORLDS,
                "mounts": [{"source": "servers", "target": "/app/mcp_servers"}]}),
            ),
        ],
    );
}

fn run(task: &Path, output: &Path, flags: &[&str]) -> Ended {
    let mut call = archipelago();
    if let Some(host) = std::env::var_os("DOCKER_HOST") {
        call = call.env("DOCKER_HOST", host);
    }
    call.arg("run")
        .arg(task)
        .arg("--output")
        .arg(output)
        .args(flags)
        .end()
}

/// What the tools of the only trial in `output` said.
fn results(task: &Path, output: &Path) -> Vec<String> {
    let name = task.file_name().unwrap();
    let trial = output.join("trials").join(name).join("1");
    let trajectory: Trajectory = read(&trial.join("trajectory.json"));
    let messages = serde_json::to_value(&trajectory.messages).unwrap();
    let tools = messages.as_array().unwrap().iter();
    tools
        .filter(|message| message["role"] == "tool")
        .map(|message| match &message["content"] {
            Value::String(text) => text.clone(),
            parts => parts[0]["text"].as_str().unwrap().to_owned(),
        })
        .collect()
}

fn docker(args: &[&str]) -> Option<Output> {
    let output = Command::new("docker").args(args).output().ok()?;
    output.status.success().then_some(output)
}

fn worlds_image() -> bool {
    testkit::available(
        "a container engine with the image of worlds",
        docker(&["image", "inspect", WORLDS]).is_some(),
    )
}

const SEEN: &str = "the mount is read-only, the world has ['found.txt']";

#[test]
fn a_mounted_server_works_in_an_isolated_process() {
    let probe = Command::new("bwrap")
        .args([
            "--ro-bind",
            "/",
            "/",
            "--unshare-pid",
            "--proc",
            "/proc",
            "true",
        ])
        .status();
    if !testkit::available(
        "a bubblewrap that is allowed to work",
        probe.is_ok_and(|status| status.success()),
    ) {
        return;
    }
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    task(folder.path());
    let ended = run(folder.path(), output.path(), &["--isolation", "bubblewrap"]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(results(folder.path(), output.path()), [SEEN]);
    assert!(
        ended.stderr.contains("isolated by bubblewrap"),
        "{}",
        ended.stderr
    );
    let image = "the task's `image` only counts with `--sandbox docker`";
    assert!(ended.stderr.contains(image), "{}", ended.stderr);
}

#[test]
fn a_mount_without_isolation_is_refused() {
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    task(folder.path());
    let ended = run(folder.path(), output.path(), &["--isolation", "none"]);
    assert_eq!(ended.code, 2, "{}\n{}", ended.stdout, ended.stderr);
    let told: Vec<_> = ended.stdout.split_whitespace().collect();
    let told = told.join(" ");
    assert!(
        told.contains("which a process without bubblewrap cannot do"),
        "{told}"
    );
}

#[test]
fn a_mounted_server_works_in_a_container_of_the_tasks_image() {
    if !worlds_image() {
        return;
    }
    let (folder, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    task(folder.path());
    // The user of the image is not the one of this test.
    let open = Command::new("chmod")
        .arg("-R")
        .arg("a+rX")
        .arg(folder.path())
        .status();
    assert!(open.unwrap().success());
    let ended = run(folder.path(), output.path(), &["--sandbox", "docker"]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(results(folder.path(), output.path()), [SEEN]);
}

/// The names of the reference's servers, each with a tool of its own.
const SERVERS: [&str; 11] = [
    "calendar",
    "chat",
    "code",
    "documents",
    "edgar_sec",
    "filesystem",
    "fmp",
    "mail",
    "pdfs",
    "presentations",
    "spreadsheets",
];

/// Projects in the reference's layout below `folder`, and a Dockerfile that installs them.
fn projects(folder: &Path) {
    let mut recipe =
        format!("FROM {WORLDS}\nUSER root\nCOPY mcp_servers /app/mcp_servers\nRUN true");
    for name in SERVERS {
        let project = folder.join("mcp_servers").join(name);
        let package = project.join(format!("mcp_servers/{name}_server"));
        std::fs::create_dir_all(&package).unwrap();
        let description = format!(
            "[project]\nname = \"{name}-server\"\nversion = \"1\"\nrequires-python = \">=3.11\"\n\
             dependencies = [\"mcp>=1.25,<2\"]\n"
        );
        std::fs::write(project.join("pyproject.toml"), description).unwrap();
        let server = format!(
            "import os\nfrom mcp.server.fastmcp import FastMCP\n\n\
             server = FastMCP(\"{name}\")\n\n@server.tool()\ndef {name}_look() -> str:\n    \
             \"\"\"Tells the place of the world.\"\"\"\n    \
             return f\"{name} sees {{sorted(os.listdir('/filesystem'))}}\"\n\n\
             server.run(os.environ[\"MCP_TRANSPORT\"])\n"
        );
        std::fs::write(package.join("main.py"), server).unwrap();
        write!(
            recipe,
            " && cd /app/mcp_servers/{name} && uv sync --quiet --all-extras"
        )
        .unwrap();
    }
    recipe.push_str("\nUSER 10001:10001\n");
    std::fs::write(folder.join("Dockerfile"), recipe).unwrap();
}

#[test]
fn eleven_servers_in_the_layout_of_the_reference_start_by_its_configuration() {
    if !worlds_image() {
        return;
    }
    let (context, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    projects(context.path());
    let image = format!("archipelago-test-layout-{}", std::process::id());
    let build = Command::new("docker")
        .args(["build", "--quiet", "--network", "host", "--tag", &image])
        .arg(context.path())
        .env("DOCKER_BUILDKIT", "0")
        .output()
        .unwrap();
    assert!(
        build.status.success(),
        "{}",
        String::from_utf8_lossy(&build.stderr)
    );

    let servers: serde_json::Map<String, Value> = SERVERS
        .iter()
        .map(|name| {
            let server = json!({
                "transport": "stdio", "command": "uv", "args": ["run", "python", "main.py"],
                "cwd": format!("/app/mcp_servers/{name}/mcp_servers/{name}_server"),
                "env": {"MCP_TRANSPORT": "stdio"}});
            ((*name).to_owned(), server)
        })
        .collect();
    let calls: Vec<_> = SERVERS
        .iter()
        .map(|name| json!({"name": format!("{name}_{name}_look"), "arguments": {}}))
        .collect();
    write(
        folder.path(),
        &[
            (
                "initial_messages.json",
                json!([{"role": "user", "content": "Ask everyone."}]),
            ),
            (
                "agent_config.json",
                json!({
                "agent_config_id": "loop_agent", "agent_name": "Loop", "agent_config_values": {}}),
            ),
            (
                "orchestrator_config.json",
                json!({"model": "scripted/script.json"}),
            ),
            (
                "script.json",
                json!({"turns": [{"tool_calls": calls}, {"content": "Asked."}]}),
            ),
            ("mcp_config.json", json!({"mcpServers": servers})),
            (
                "sandbox_config.json",
                json!({"image": image, "network": false}),
            ),
        ],
    );
    let output = tempfile::tempdir().unwrap();
    let ended = run(folder.path(), output.path(), &["--sandbox", "docker"]);
    let removed = docker(&["image", "rm", "--force", &image]);
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    let expected = SERVERS.map(|name| format!("{name} sees []"));
    assert_eq!(results(folder.path(), output.path()), expected);
    assert!(removed.is_some(), "the image `{image}` is left behind");
}
