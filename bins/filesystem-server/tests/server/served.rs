//! A world in a temporary directory and the server that serves it.

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    process::Command,
};

use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
    transport::TokioChildProcess,
};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_filesystem-server");

pub(crate) struct Served {
    /// Holds `world`, the root, and whatever must be outside of it.
    pub(crate) folder: TempDir,
    pub(crate) client: RunningService<RoleClient, ()>,
}

/// A temporary directory with an empty `world` in it.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("world")).unwrap();
    folder
}

/// A temporary directory with the agent's files of an archive as its `world`.
pub(crate) fn folder_of(archive: &Path) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("unpacked");
    zip::ZipArchive::new(Cursor::new(fs::read(archive).unwrap()))
        .unwrap()
        .extract(&unpacked)
        .unwrap();
    fs::rename(unpacked.join("filesystem"), folder.path().join("world")).unwrap();
    folder
}

/// The program without the variables of whoever runs the tests.
pub(crate) fn program() -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().env("RUST_LOG", "error");
    command
}

impl Served {
    /// Serves an empty world.
    pub(crate) async fn with(flags: &[&str]) -> Self {
        Self::of(folder(), flags).await
    }

    pub(crate) async fn of(folder: TempDir, flags: &[&str]) -> Self {
        let mut command = program();
        command
            .arg("--root")
            .arg(folder.path().join("world"))
            .args(flags);
        Self::started(folder, command).await
    }

    pub(crate) async fn started(folder: TempDir, command: Command) -> Self {
        let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let client = ().serve(transport).await.unwrap();
        Self { folder, client }
    }

    pub(crate) fn world(&self) -> PathBuf {
        self.folder.path().join("world")
    }

    /// Puts a file into the world, with the folders it needs.
    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.world().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.world().join(path)).unwrap();
    }

    /// The names of all tools, in order.
    pub(crate) async fn tool_names(&self) -> Vec<String> {
        let tools = self.client.list_all_tools().await.unwrap();
        tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    pub(crate) async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        self.client
            .call_tool(CallToolRequestParams::new(tool).with_arguments(arguments))
            .await
            .unwrap()
    }

    /// The text of a successful result, which must stand in the structured content as well.
    pub(crate) async fn text(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let text = only_text(&result);
        assert_eq!(result.is_error, Some(false), "{text}");
        assert_eq!(result.structured_content, Some(json!({"result": text})));
        text
    }

    /// The reason of a tool's failure.
    pub(crate) async fn failure(&self, tool: &'static str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let text = only_text(&result);
        assert_eq!(result.is_error, Some(true), "{text}");
        assert_eq!(result.structured_content, None);
        let prefix = format!("Internal error: Error calling tool '{tool}': ");
        text.strip_prefix(&prefix)
            .unwrap_or_else(|| panic!("{text}"))
            .to_owned()
    }

    /// The lines of a listing, without order.
    pub(crate) async fn listed(&self, path: &str) -> Vec<String> {
        let text = self.text("list_files", json!({"path": path})).await;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

pub(crate) fn only_text(result: &CallToolResult) -> String {
    assert_eq!(result.content.len(), 1);
    result.content[0].as_text().unwrap().text.clone()
}
