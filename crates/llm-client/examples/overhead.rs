//! Makes calls of a model and ends; what a call costs is measured from outside (`benches/llm`).
//!
//! `OPENAI_BASE_URL=… OPENAI_API_KEY=… overhead REQUEST.json CALLS AT_ONCE`, where the request has
//! `messages` and `tools`. With `bare` for AT_ONCE the same bytes go through a socket with nothing around it, ready
//! made: the part of a call that no client can save.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use futures::StreamExt as _;
use llm_client::{CallLabels, ChatRequest, Models};

#[derive(serde::Deserialize)]
struct Request {
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
}

// One thread, as the peer of the benchmark has.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, calls, at_once] = arguments.as_slice() else {
        return Err("give a request, the number of calls and how many are made at once".into());
    };
    let calls: usize = calls.parse()?;
    if at_once == "bare" {
        return bare(&std::fs::read(file)?, calls);
    }
    let at_once: usize = at_once.parse()?;
    let asked: Request = serde_json::from_slice(&std::fs::read(file)?)?;
    let extra_args = Object::new();
    let models = Models::new(|name| std::env::var(name).ok());
    let model = models.resolve("openai/gpt-4.1", &extra_args)?;
    let request = ChatRequest {
        messages: &asked.messages,
        tools: &asked.tools,
        extra_args: &extra_args,
        timeout: Duration::from_secs(60),
        labels: CallLabels::default(),
    };
    let mut answers = futures::stream::iter(0..calls)
        .map(|_| model.chat(request, &|_| {}))
        .buffer_unordered(at_once);
    while let Some(answer) = answers.next().await {
        if answer?.message.text().is_empty() {
            return Err("an answer is empty".into());
        }
    }
    Ok(())
}

/// The same exchange without a client: one connection, a request that is ready, an answer that nobody reads.
fn bare(request: &[u8], calls: usize) -> Result<(), Box<dyn std::error::Error>> {
    let base = std::env::var("OPENAI_BASE_URL")?;
    let (host, path) = base
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or("OPENAI_BASE_URL is no http://HOST/PATH")?;
    let mut body: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(request)?;
    body.insert("model".into(), "gpt-4.1".into());
    let body = serde_json::to_vec(&body)?;
    let mut sent = format!(
        "POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        std::env::var("OPENAI_API_KEY")?,
        body.len()
    )
    .into_bytes();
    sent.extend(body);
    let mut socket = TcpStream::connect(host)?;
    socket.set_nodelay(true)?;
    let mut answer = vec![0; 64 * 1024];
    for _ in 0..calls {
        socket.write_all(&sent)?;
        let mut filled = 0;
        while !is_whole(&answer[..filled])? {
            match socket.read(&mut answer[filled..])? {
                0 => return Err("the answer ended early".into()),
                count => filled += count,
            }
        }
    }
    Ok(())
}

/// Whether all bytes of an answer are there.
fn is_whole(answer: &[u8]) -> Result<bool, Box<dyn std::error::Error>> {
    let text = std::str::from_utf8(answer)?;
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return Ok(false);
    };
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("the stub refused: {text}").into());
    }
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")
                .map(str::to_owned)
        })
        .ok_or("the answer has no length")?;
    Ok(body.len() == length.parse::<usize>()?)
}
