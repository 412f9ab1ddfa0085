//! The turns: roles, parts, calls and what answers them, signatures.

use serde_json::{Map, Value};

use super::super::reply::signature;
use super::{Check, Generation, field, field_of, fits_function, list, only};

/// What a part can hold, one of these.
const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
];

/// Further fields of a part.
const BESIDE: &[&str] = &[
    "thought",
    "thoughtSignature",
    "mediaResolution",
    "videoMetadata",
];

/// The documented stand-in for a signature, plain and in base64.
const STAND_INS: &[&str] = &[
    "skip_thought_signature_validator",
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
];

/// Beginnings of base64 by media type.
const MAGIC: &[(&str, &str)] = &[
    ("image/png", "iVBORw0KGgo"),
    ("image/jpeg", "/9j/"),
    ("image/webp", "UklGR"),
    ("application/pdf", "JVBERi"),
];

/// The media that are taken by the beginning of their types.
const MEDIA: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "application/pdf",
    "audio/",
    "video/",
    "text/",
];

pub(super) fn check_instruction(instruction: &Value) -> Check {
    let parts = instruction.as_object().map(|object| list(object, "parts"));
    let parts = parts.unwrap_or_default();
    let is_text = |part: &Value| {
        let text = part.get("text").and_then(Value::as_str);
        text.is_some_and(|text| !text.is_empty())
    };
    if parts.is_empty() || !parts.iter().all(is_text) {
        return Err(
            "system_instruction.parts: required oneof field 'data' must have one initialized field"
                .to_owned(),
        );
    }
    Ok(())
}

pub(super) fn check(body: &Map<String, Value>, generation: Generation, lenient: bool) -> Check {
    let contents = list(body, "contents");
    if contents.is_empty() {
        return Err("contents is not specified".to_owned());
    }
    let mut reader = Reader {
        generation,
        lenient,
        open: Vec::new(),
        last: "",
    };
    for (index, content) in contents.iter().enumerate() {
        reader
            .content(content)
            .map_err(|reason| format!("contents[{index}]: {reason}"))?;
    }
    if !reader.open.is_empty() {
        return Err(UNEQUAL.to_owned());
    }
    check_signatures(contents, generation)
}

const UNEQUAL: &str = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";

struct Reader<'b> {
    generation: Generation,
    lenient: bool,
    /// Name and id of the calls that wait for a response.
    open: Vec<(&'b str, Option<&'b str>)>,
    last: &'b str,
}

impl<'b> Reader<'b> {
    fn content(&mut self, content: &'b Value) -> Check {
        let object = content.as_object().ok_or("must be an object")?;
        only(object, &["role", "parts"], "contents")?;
        let role = object.get("role").and_then(Value::as_str);
        let role = role.unwrap_or_default();
        if !matches!(role, "user" | "model") {
            return Err("Please use a valid role: user, model.".to_owned());
        }
        if self.last.is_empty() && role != "user" {
            return Err("the first content must be of role user".to_owned());
        }
        let parts = list(object, "parts");
        if parts.is_empty() {
            return Err("parts: must not be empty".to_owned());
        }
        let mut calls = Vec::new();
        let mut responses = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            self.part(part, role, &mut calls, &mut responses)
                .map_err(|reason| format!("parts[{index}]: {reason}"))?;
        }
        self.pair(&responses)?;
        if !calls.is_empty() && self.last == "model" {
            return Err("Please ensure that function call turn comes immediately after a user turn or after a function response turn.".to_owned());
        }
        self.open = calls;
        self.last = role;
        Ok(())
    }

    /// As many responses as calls stand right behind them, under the same names.
    fn pair(&mut self, responses: &[(&'b str, Option<&'b str>)]) -> Check {
        if self.open.is_empty() && !responses.is_empty() {
            return Err("Please ensure that function response turn comes immediately after a function call turn.".to_owned());
        }
        if responses.len() != self.open.len() {
            return Err(UNEQUAL.to_owned());
        }
        for (call, response) in self.open.iter().zip(responses) {
            if call.0 != response.0 {
                return Err(format!(
                    "the function response part `{}` answers a call of `{}`",
                    response.0, call.0
                ));
            }
            if call.1 != response.1 {
                return Err(format!(
                    "the function response part has id {:?}, its call {:?}",
                    response.1, call.1
                ));
            }
        }
        Ok(())
    }

    fn part(
        &self,
        part: &'b Value,
        role: &str,
        calls: &mut Vec<(&'b str, Option<&'b str>)>,
        responses: &mut Vec<(&'b str, Option<&'b str>)>,
    ) -> Check {
        let object = part.as_object().ok_or("must be an object")?;
        if !self.lenient {
            let known: Vec<&str> = DATA.iter().chain(BESIDE).copied().collect();
            only(object, &known, "contents.parts")?;
        }
        let data: Vec<&str> = DATA
            .iter()
            .filter(|name| field(object, name).is_some())
            .copied()
            .collect();
        let empty = "required oneof field 'data' must have one initialized field";
        let [kind] = data.as_slice() else {
            return Err(empty.to_owned());
        };
        let value = field(object, kind).ok_or(empty)?;
        self.check_signature(object, part)?;
        match *kind {
            "text" => {
                let signed = field(object, "thoughtSignature").is_some();
                match value.as_str() {
                    Some(text) if !text.is_empty() || signed => Ok(()),
                    _ => Err(empty.to_owned()),
                }
            }
            "inlineData" => check_blob(value),
            "functionCall" if role != "model" => Err("function calls are the model's".to_owned()),
            "functionCall" => {
                calls.push(self.named(value)?);
                match field_of(value, "args") {
                    None | Some(Value::Object(_)) => Ok(()),
                    Some(_) => Err("function_call.args: must be an object".to_owned()),
                }
            }
            "functionResponse" if role != "user" => {
                Err("function responses are the user's".to_owned())
            }
            "functionResponse" => {
                responses.push(self.named(value)?);
                self.check_response(value)
            }
            _ => Ok(()),
        }
    }

    /// Name and id of a call or a response.
    fn named(&self, value: &'b Value) -> Result<(&'b str, Option<&'b str>), String> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        if !fits_function(name) {
            return Err(format!("Invalid function name `{name}`"));
        }
        let id = text("id");
        if id.is_some() && !self.generation.signs() && !self.lenient {
            return Err("Unknown name \"id\": Cannot find field.".to_owned());
        }
        Ok((name, id))
    }

    fn check_response(&self, response: &Value) -> Check {
        if !response.get("response").is_some_and(Value::is_object) {
            return Err("function_response.response: must be an object".to_owned());
        }
        let parts = response.get("parts").and_then(Value::as_array);
        if parts.is_some() && !self.generation.signs() {
            return Err(
                "Unknown name \"parts\" at 'function_response': Cannot find field.".to_owned(),
            );
        }
        for part in parts.into_iter().flatten() {
            let blob = field_of(part, "inlineData");
            let blob = blob.ok_or("function_response.parts: must hold inline data")?;
            check_blob(blob)?;
            let kind = field_of(blob, "mimeType").and_then(Value::as_str);
            let taken = [
                "image/png",
                "image/jpeg",
                "image/webp",
                "application/pdf",
                "text/plain",
            ];
            if !kind.is_some_and(|kind| taken.contains(&kind)) {
                return Err(format!(
                    "function_response.parts: unsupported type {kind:?}"
                ));
            }
        }
        Ok(())
    }

    /// A signature is one of the stub's own, on the part that it gave it to.
    fn check_signature(&self, object: &Map<String, Value>, part: &Value) -> Check {
        let Some(given) = field(object, "thoughtSignature") else {
            return Ok(());
        };
        let given = given.as_str().filter(|given| !given.is_empty());
        let given = given.ok_or("thought_signature: must be base64")?;
        if self.lenient || STAND_INS.contains(&given) || given == signature(part) {
            return Ok(());
        }
        Err("Corrupted thought signature.".to_owned())
    }
}

fn check_blob(blob: &Value) -> Check {
    let text = |key: &str| field_of(blob, key).and_then(Value::as_str);
    let (kind, data) = (text("mimeType").unwrap_or_default(), text("data"));
    let data = data.filter(|data| !data.is_empty());
    let data = data.ok_or("inline_data.data: must not be empty")?;
    if !MEDIA.iter().any(|beginning| kind.starts_with(beginning)) {
        return Err(format!("Unsupported MIME type: {kind}"));
    }
    let magic = MAGIC.iter().find(|(known, _)| *known == kind);
    if magic.is_some_and(|(_, beginning)| !data.starts_with(beginning)) {
        return Err("Unable to process input image. Please retry or report.".to_owned());
    }
    Ok(())
}

/// In the current turn, which begins with what the user last said, each step's first call is signed.
fn check_signatures(contents: &[Value], generation: Generation) -> Check {
    if !generation.signs() {
        return Ok(());
    }
    let parts = |content: &'static str| move |value: &Value| value.get(content).is_some();
    let said_by_user = |content: &Value| {
        let of_user = content.get("role").and_then(Value::as_str) == Some("user");
        let all = content.get("parts").and_then(Value::as_array);
        of_user
            && all.is_some_and(|all| {
                !all.iter()
                    .any(|part| parts("functionResponse")(part) || parts("function_response")(part))
            })
    };
    let begin = contents.iter().rposition(said_by_user).unwrap_or(0);
    for (index, content) in contents.iter().enumerate().skip(begin) {
        let all = content.get("parts").and_then(Value::as_array);
        let first = all.into_iter().flatten().find_map(|part| {
            let call = field_of(part, "functionCall")?;
            Some((call, field_of(part, "thoughtSignature")))
        });
        if let Some((call, None)) = first {
            return Err(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `{}`, position {index}.",
                call.get("name").and_then(Value::as_str).unwrap_or_default()
            ));
        }
    }
    Ok(())
}
