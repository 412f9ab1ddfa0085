//! What Converse refuses, as far as its interface and the models behind it say so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::reply::signature;

/// The fields of a request.
const KNOWN: &[&str] = &[
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "outputConfig",
    "performanceConfig",
    "projectIdentifier",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

/// Most marks for the prompt cache.
const MOST_CACHE_POINTS: usize = 4;

/// Checks the body of a request. The error says what is wrong.
pub(super) fn check(body: &Value, lenient: bool) -> Result<(), String> {
    let fields = body.as_object().ok_or("the body is no JSON object")?;
    if let Some(name) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("{name}: extraneous key is not permitted"));
    }
    for block in list(body.get("system")) {
        let (kind, inner) = union(block, "system")?;
        match kind {
            "text" => text(inner, "system")?,
            "cachePoint" | "guardContent" => {}
            _ => return Err(format!("system: `{kind}` is not allowed")),
        }
    }
    check_messages(body, lenient)?;
    check_tools(body)?;
    check_inference(body)?;
    let points = body.to_string().matches("\"cachePoint\"").count();
    if points > MOST_CACHE_POINTS {
        return Err(format!(
            "A maximum of {MOST_CACHE_POINTS} cache points may be provided. Found {points}."
        ));
    }
    let metadata = body.get("requestMetadata").and_then(Value::as_object);
    if metadata.is_some_and(|map| map.is_empty() || map.values().any(|value| !value.is_string())) {
        return Err("requestMetadata: expected a map of texts".to_owned());
    }
    Ok(())
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// The one member of a union.
fn union<'v>(value: &'v Value, place: &str) -> Result<(&'v str, &'v Value), String> {
    let object = value.as_object().filter(|object| object.len() == 1);
    object
        .and_then(|object| object.iter().next())
        .map(|(kind, inner)| (kind.as_str(), inner))
        .ok_or_else(|| format!("{place}: exactly one member of the union must be set, got {value}"))
}

fn text(value: &Value, place: &str) -> Result<(), String> {
    match value.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(()),
        Some(_) => Err(format!(
            "The text field in the ContentBlock object at {place} is blank. Add text to the text field, and try again."
        )),
        None => Err(format!("{place}: expected a text, got {value}")),
    }
}

fn check_messages(body: &Value, lenient: bool) -> Result<(), String> {
    let messages: Vec<&Value> = list(body.get("messages")).collect();
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        let role = message
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let content: Vec<&Value> = list(message.get("content")).collect();
        let follows = match role {
            "user" => before != "user",
            "assistant" => matches!(before, "user" | "system"),
            "system" => before == "user",
            _ => {
                return Err(format!(
                    "{place}.role: `{role}` is not one of user, assistant, system"
                ));
            }
        };
        if !follows && before.is_empty() {
            return Err("A conversation must start with a user message. Try again with a conversation that starts with a user message.".to_owned());
        }
        if !follows {
            return Err(format!(
                "{place}: roles must alternate between user and assistant"
            ));
        }
        if content.is_empty() {
            return Err(format!(
                "The content field in the Message object at {place} is empty. Add a ContentBlock object to the content field and try again."
            ));
        }
        check_answers(&content, &open, &place)?;
        open.clear();
        for (number, block) in content.iter().enumerate() {
            let place = format!("{place}.content.{number}");
            let id = check_block(block, role, &place, lenient)?;
            open.extend(id);
        }
        check_documents(&content, &place)?;
        before = role;
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "Expected toolResult blocks for the following Ids: {}",
            open.join(", ")
        ))
    }
}

/// The results in `content` answer the calls `open`, all of them and no others.
fn check_answers(content: &[&Value], open: &[&str], place: &str) -> Result<(), String> {
    let results: Vec<&str> = content
        .iter()
        .filter_map(|block| block.get("toolResult")?.get("toolUseId")?.as_str())
        .collect();
    if let Some(id) = open.iter().find(|id| !results.contains(id)) {
        return Err(format!(
            "Expected toolResult blocks at {place}.content for the following Ids: {id}"
        ));
    }
    let is_twice = results
        .iter()
        .enumerate()
        .any(|(index, id)| results[..index].contains(id));
    if results.len() > open.len() || is_twice {
        return Err(format!(
            "The number of toolResult blocks at {place}.content exceeds the number of toolUse blocks of previous turn."
        ));
    }
    let first_other = content
        .iter()
        .position(|block| block.get("toolResult").is_none() && block.get("cachePoint").is_none());
    let last_result = content
        .iter()
        .rposition(|block| block.get("toolResult").is_some());
    match (first_other, last_result) {
        (Some(other), Some(result)) if other < result => {
            Err(format!("{place}: toolResult blocks come before all others"))
        }
        _ => Ok(()),
    }
}

/// Checks a block; the id of a call that is to be answered.
fn check_block<'v>(
    block: &'v Value,
    role: &str,
    place: &str,
    lenient: bool,
) -> Result<Option<&'v str>, String> {
    let (kind, inner) = union(block, place)?;
    match (role, kind) {
        (_, "text") => text(inner, place)?,
        ("user" | "assistant", "cachePoint") => {
            if inner.get("type").and_then(Value::as_str) != Some("default") {
                return Err(format!("{place}.cachePoint.type: expected `default`"));
            }
        }
        ("user", "image") => check_picture(inner, place)?,
        ("user", "document") => check_document(inner, place)?,
        ("user", "toolResult") => {
            check_id(inner, place)?;
            check_result(inner, place)?;
        }
        ("assistant", "toolUse") => {
            check_name(inner.get("name"), place)?;
            if !inner.get("input").is_some_and(Value::is_object) {
                return Err(format!(
                    "The format of the value at {place}.toolUse.input is invalid. Provide a json object for the field and try again."
                ));
            }
            return Ok(Some(check_id(inner, place)?));
        }
        ("assistant", "reasoningContent") => {
            let (kind, inner) = union(inner, place)?;
            let told = inner
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let signed = inner.get("signature").and_then(Value::as_str);
            if kind == "reasoningText" && !lenient && signed != Some(&signature(told)) {
                return Err(format!("{place}: Invalid `signature` in `thinking` block"));
            }
        }
        (
            "user" | "assistant",
            "guardContent" | "video" | "audio" | "searchResult" | "citationsContent",
        ) => {}
        _ => {
            return Err(format!(
                "{place}: `{kind}` is not allowed in a turn of the {role}"
            ));
        }
    }
    Ok(None)
}

fn check_id<'v>(inner: &'v Value, place: &str) -> Result<&'v str, String> {
    let id = inner
        .get("toolUseId")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if (1..=64).contains(&id.len()) && id.bytes().all(fits) {
        return Ok(id);
    }
    Err(format!(
        "Value '{id}' at '{place}.toolUseId' failed to satisfy constraint: [a-zA-Z0-9_.:-]+, 1 to 64"
    ))
}

fn check_name(name: Option<&Value>, place: &str) -> Result<(), String> {
    let name = name.and_then(Value::as_str).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(format!(
        "Value '{name}' at '{place}.name' failed to satisfy constraint: [a-zA-Z0-9_-]+, 1 to 64"
    ))
}

fn check_result(inner: &Value, place: &str) -> Result<(), String> {
    let status = inner.get("status").and_then(Value::as_str);
    if !matches!(status, None | Some("success" | "error")) {
        return Err(format!(
            "{place}.toolResult.status: expected success or error"
        ));
    }
    if !inner.get("content").is_some_and(Value::is_array) {
        return Err(format!("{place}.toolResult.content: it is missing"));
    }
    for block in list(inner.get("content")) {
        let (kind, inner) = union(block, place)?;
        match kind {
            "text" => text(inner, place)?,
            "image" => check_picture(inner, place)?,
            "document" => check_document(inner, place)?,
            "json" | "video" | "searchResult" => {}
            _ => {
                return Err(format!(
                    "{place}.toolResult.content: `{kind}` is not allowed"
                ));
            }
        }
    }
    Ok(())
}

fn bytes(inner: &Value, place: &str) -> Result<Vec<u8>, String> {
    let text = inner
        .pointer("/source/bytes")
        .and_then(Value::as_str)
        .unwrap_or_default();
    STANDARD
        .decode(text)
        .ok()
        .filter(|bytes| !bytes.is_empty())
        .ok_or_else(|| format!("{place}.source.bytes: expected base64"))
}

fn check_picture(inner: &Value, place: &str) -> Result<(), String> {
    let bytes = bytes(inner, place)?;
    let format = inner
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let magic: &[u8] = match format {
        "png" => b"\x89PNG",
        "jpeg" => b"\xff\xd8\xff",
        "gif" => b"GIF8",
        "webp" => b"RIFF",
        _ => {
            return Err(format!(
                "{place}.image.format: `{format}` is not one of png, jpeg, gif, webp"
            ));
        }
    };
    if bytes.starts_with(magic) {
        return Ok(());
    }
    Err(format!(
        "{place}: the image was specified using the {format} media type, but does not appear to be one"
    ))
}

fn check_document(inner: &Value, place: &str) -> Result<(), String> {
    bytes(inner, place)?;
    let name = inner
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let fits = |character: char| character.is_ascii_alphanumeric() || " -()[]".contains(character);
    if name.is_empty() || !name.chars().all(fits) || name.contains("  ") {
        return Err(format!(
            "The document file name `{name}` can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets."
        ));
    }
    let formats = [
        "pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md",
    ];
    let format = inner
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if formats.contains(&format) {
        return Ok(());
    }
    Err(format!(
        "{place}.document.format: `{format}` is not one of {}",
        formats.join(", ")
    ))
}

fn check_documents(content: &[&Value], place: &str) -> Result<(), String> {
    let names: Vec<&Value> = content
        .iter()
        .filter_map(|block| block.get("document")?.get("name"))
        .collect();
    if names
        .iter()
        .enumerate()
        .any(|(index, name)| names[..index].contains(name))
    {
        return Err(format!("{place}: duplicate document names are not allowed"));
    }
    if !names.is_empty() && !content.iter().any(|block| block.get("text").is_some()) {
        return Err(format!(
            "{place}: a text block is required when using documents"
        ));
    }
    Ok(())
}

fn check_tools(body: &Value) -> Result<(), String> {
    let Some(config) = body.get("toolConfig") else {
        let blocks = list(body.get("messages")).flat_map(|message| list(message.get("content")));
        let mut calls = blocks
            .filter(|block| block.get("toolUse").is_some() || block.get("toolResult").is_some());
        return match calls.next() {
            None => Ok(()),
            Some(_) => Err("The toolConfig field must be defined when using toolUse and toolResult content blocks.".to_owned()),
        };
    };
    let tools: Vec<&Value> = list(config.get("tools")).collect();
    if tools.is_empty() {
        return Err("toolConfig.tools: expected at least one tool".to_owned());
    }
    let mut names = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("toolConfig.tools.{index}");
        let (kind, inner) = union(tool, &place)?;
        match kind {
            "cachePoint" | "systemTool" => continue,
            "toolSpec" => {}
            _ => return Err(format!("{place}: `{kind}` is no tool")),
        }
        let known = ["name", "description", "inputSchema", "strict"];
        if let Some(name) = unknown(inner, &known) {
            return Err(format!("{place}.{name}: extraneous key is not permitted"));
        }
        check_name(inner.get("name"), &place)?;
        if inner.get("description").and_then(Value::as_str) == Some("") {
            return Err(format!(
                "{place}.description: expected at least one character"
            ));
        }
        let schema = inner.pointer("/inputSchema/json");
        if schema.and_then(|schema| schema.get("type")?.as_str()) != Some("object") {
            return Err(format!(
                "The value at {place}.inputSchema.json.type must be one of the following: object."
            ));
        }
        if names.contains(&inner.get("name")) {
            return Err(format!(
                "The tool at {place} has a name that another one has"
            ));
        }
        names.push(inner.get("name"));
    }
    match config.get("toolChoice") {
        None => Ok(()),
        Some(choice) => match union(choice, "toolConfig.toolChoice")? {
            ("auto" | "any", _) => Ok(()),
            ("tool", inner) if names.contains(&inner.get("name")) => Ok(()),
            _ => Err(format!(
                "toolConfig.toolChoice: {choice} is no choice among the tools"
            )),
        },
    }
}

fn unknown<'v>(value: &'v Value, known: &[&str]) -> Option<&'v str> {
    let fields = value.as_object().map(Map::keys).into_iter().flatten();
    fields
        .map(String::as_str)
        .find(|name| !known.contains(name))
}

fn check_inference(body: &Value) -> Result<(), String> {
    let Some(config) = body.get("inferenceConfig") else {
        return Ok(());
    };
    let known = ["maxTokens", "temperature", "topP", "stopSequences"];
    if let Some(name) = unknown(config, &known) {
        return Err(format!(
            "inferenceConfig.{name}: extraneous key is not permitted"
        ));
    }
    for (name, least, most) in [
        ("maxTokens", 1.0, f64::MAX),
        ("temperature", 0.0, 1.0),
        ("topP", 0.0, 1.0),
    ] {
        let Some(value) = config.get(name) else {
            continue;
        };
        if !value
            .as_f64()
            .is_some_and(|number| (least..=most).contains(&number))
        {
            return Err(format!(
                "inferenceConfig.{name}: {value} is not between {least} and {most}"
            ));
        }
    }
    let budget = body.pointer("/additionalModelRequestFields/thinking/budget_tokens");
    let limit = config.get("maxTokens").and_then(Value::as_u64);
    if budget
        .and_then(Value::as_u64)
        .is_some_and(|budget| budget < 1024 || Some(budget) >= limit)
    {
        return Err(
            "`max_tokens` must be greater than `thinking.budget_tokens`, which is at least 1024"
                .to_owned(),
        );
    }
    Ok(())
}
