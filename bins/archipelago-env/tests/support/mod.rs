//! A real environment as a process, and archives for it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::print_stderr,
    reason = "each test file uses a part of it"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::multipart::{Form, Part};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub struct Env {
    pub child: Child,
    pub url: String,
    pub http: reqwest::Client,
    pub log: Arc<Mutex<String>>,
    home: tempfile::TempDir,
}

impl Env {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With these variables.
    pub async fn with(variables: &[(&str, &str)]) -> Self {
        Self::start_with(|command| {
            command.envs(variables.iter().copied());
        })
        .await
    }

    pub async fn start_with(change: impl FnOnce(&mut Command)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-env"));
        command
            .args(["--port", "0", "--stop-on-stdin-close", "--filesystem-root"])
            .arg(home.path().join("filesystem"))
            .arg("--apps-data-root")
            .arg(home.path().join(".apps_data"))
            .env_remove("ENV")
            .env_remove("RUST_LOG")
            .env("ENV_AUTH_TOKEN", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let (found, url) = tokio::sync::oneshot::channel();
        let kept = Arc::clone(&log);
        tokio::spawn(async move {
            let mut found = Some(found);
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(url) = line.strip_prefix("listening on ")
                    && let Some(found) = found.take()
                {
                    found.send(url.to_owned()).unwrap();
                }
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let url = tokio::time::timeout(PATIENCE, url).await;
        let url = url
            .unwrap()
            .unwrap_or_else(|_| panic!("{}", log.lock().unwrap()));
        Self {
            child,
            url,
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .unwrap(),
            log,
            home,
        }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn files(&self) -> PathBuf {
        self.home.path().join("filesystem")
    }

    pub fn apps_data(&self) -> PathBuf {
        self.home.path().join(".apps_data")
    }

    pub fn id(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.http.get(self.at(path)).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        self.http
            .post(self.at(path))
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap()
    }

    pub async fn populate_form(&self, query: &str, form: Form) -> (StatusCode, Value) {
        let path = format!("/data/populate{query}");
        let response = self
            .http
            .post(self.at(&path))
            .multipart(form)
            .send()
            .await
            .unwrap();
        let status = response.status();
        (status, response.json().await.unwrap())
    }

    pub async fn populate(&self, query: &str, archive: Vec<u8>) -> (StatusCode, Value) {
        self.populate_form(query, Form::new().part("archive", file_part(archive)))
            .await
    }

    pub async fn snapshot(&self) -> Vec<u8> {
        let response = self
            .http
            .post(self.at("/data/snapshot"))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        response.bytes().await.unwrap().to_vec()
    }

    /// One MCP message, and the session and text of its answer.
    pub async fn mcp(
        &self,
        path: &str,
        session: Option<&str>,
        body: Value,
    ) -> (Option<String>, String) {
        let mut request = self
            .http
            .post(self.at(path))
            .header("accept", "application/json, text/event-stream")
            .json(&body);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.unwrap();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|id| id.to_str().unwrap().to_owned());
        (session, response.text().await.unwrap())
    }

    pub async fn mcp_session(&self, path: &str) -> String {
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        self.mcp(path, None, initialize).await.0.unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.id()).unwrap()), signal).unwrap();
    }

    /// Waits for the process to end: its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .unwrap()
            .unwrap()
            .code()
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

/// A server that hangs in a call does not see its input close when the environment is killed.
impl Drop for Env {
    fn drop(&mut self) {
        let servers = self.child.id().map(descendants).unwrap_or_default();
        for id in servers {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(i32::try_from(id).unwrap()), Signal::SIGKILL);
        }
    }
}

pub fn file_part(archive: Vec<u8>) -> Part {
    Part::bytes(archive)
        .file_name("world.tar.gz")
        .mime_str("application/gzip")
        .unwrap()
}

/// A `tar.gz` of files.
pub fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    archive(|tar| {
        for (name, content) in files {
            append(tar, tar::EntryType::Regular, name, "", content);
        }
    })
}

pub type Tar = tar::Builder<GzEncoder<Vec<u8>>>;

pub fn archive(fill: impl FnOnce(&mut Tar)) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    fill(&mut tar);
    tar.into_inner().unwrap().finish().unwrap()
}

/// A member whose name and link are written as they are.
pub fn append(tar: &mut Tar, kind: tar::EntryType, name: &str, link: &str, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_cksum();
    tar.append(&header, content).unwrap();
}

/// Name and content of every member.
pub fn members(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
    use std::io::Read as _;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().to_str().unwrap().to_owned(), content)
        })
        .collect()
}

/// Every path below `root`, with its content, link target, mode and time.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let what = if metadata.is_dir() {
                pending.push(path.clone());
                "directory".to_owned()
            } else if metadata.is_symlink() {
                format!("link to {}", std::fs::read_link(&path).unwrap().display())
            } else {
                format!(
                    "{:o} {} {:?}",
                    metadata.mode(),
                    metadata.mtime(),
                    std::fs::read(&path).unwrap()
                )
            };
            found.insert(path, what);
        }
    }
    found
}

/// An MCP server over stdio in a few lines of `sh`: `echo` answers with a variable, `hang` never.
pub fn stub_server() -> Value {
    const SCRIPT: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\|"[^"]*"\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stub","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}}]}' ;;
    *'"hang"'*) sleep 600 ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"'"$FILESYSTEM_ROOT"'"}]}' ;;
    *) result='{}' ;;
  esac
  [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
    json!({"transport": "stdio", "command": "sh", "args": ["-c", SCRIPT]})
}

/// Bytes that do not compress.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut noise = Vec::with_capacity(length);
    while noise.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise.extend_from_slice(&(state >> 32).to_le_bytes()[..4]);
    }
    noise
}

/// Polls until `done` answers true.
pub async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited too long: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Children and further descendants of a process, by the parent ids in `/proc`.
pub fn descendants(of: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let after_name = stat.rsplit(')').next().unwrap();
        let parent: u32 = after_name
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        parents.push((id, parent));
    }
    let mut family = vec![of];
    let mut known = 0;
    while known < family.len() {
        let parent = family[known];
        known += 1;
        family.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(id, _)| *id),
        );
    }
    family.split_off(1)
}

/// `../shared/golden`, or `None` with a visible word about the test that is skipped.
pub fn golden(part: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let path = shared.join("golden").join(part);
    if !path.exists() {
        eprintln!("SKIPPED: {} is absent", path.display());
        return None;
    }
    Some(path)
}
