//! OpenAI's published types, as async-openai has them: a second opinion on a request that does not come from us.

use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::CreateResponse;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::Refusal;

/// Holds a request of chat completions against its type.
pub(super) fn check_chat(body: &Value) -> Result<(), Refusal> {
    check::<CreateChatCompletionRequest>(body)
}

/// Holds a request of the Responses interface against its type.
pub(super) fn check_response(body: &Value) -> Result<(), Refusal> {
    check::<CreateResponse>(body)
}

/// Whether `body` is a `T`, and nothing inside of its parameters gets lost on the way there and back: what the type
/// does not know, the interface does not know either. Names of parameters are not looked at: some that are still
/// taken have left the types.
fn check<T: DeserializeOwned + Serialize>(body: &Value) -> Result<(), Refusal> {
    let refused = |what: String| Refusal {
        message: format!("Invalid request: {what} (the types of async-openai)."),
        param: None,
        code: Some("invalid_type".to_owned()),
    };
    let typed: T =
        serde_json::from_value(body.clone()).map_err(|error| refused(error.to_string()))?;
    let back = serde_json::to_value(&typed).map_err(|error| refused(error.to_string()))?;
    let unknown = body
        .as_object()
        .into_iter()
        .flatten()
        .find_map(|(name, value)| {
            let below = lost(value, back.get(name)?)?;
            Some(format!("{name}{below}"))
        });
    match unknown {
        Some(path) => Err(refused(format!("`{path}` is not known"))),
        None => Ok(()),
    }
}

/// The path of the first value that is in `given` and not in `kept`.
fn lost(given: &Value, kept: &Value) -> Option<String> {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => given.iter().find_map(|(name, value)| {
            let below = match kept.get(name) {
                Some(kept) => lost(value, kept)?,
                None if value.is_null() => return None,
                None => String::new(),
            };
            Some(format!(".{name}{below}"))
        }),
        (Value::Array(given), Value::Array(kept)) => {
            given.iter().enumerate().find_map(|(index, value)| {
                let below = match kept.get(index) {
                    Some(kept) => lost(value, kept)?,
                    None => String::new(),
                };
                Some(format!("[{index}]{below}"))
            })
        }
        // Numbers are narrowed, and some enums have several spellings.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use async_openai::types::chat::{
        CreateChatCompletionResponse, CreateChatCompletionStreamResponse,
    };
    use async_openai::types::responses::{Response, ResponseStreamEvent};
    use serde_json::json;

    use super::*;
    use crate::openai::{Turn, answer, responses};
    use crate::stub::Reply;

    fn chat(changes: &Value) -> Result<(), String> {
        let mut body = json!({
            "model": "gpt-4.1",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "What is in it?"}]}],
            "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "x-own": 1}}}],
        });
        let fields = body.as_object_mut().unwrap();
        fields.extend(changes.as_object().unwrap().clone());
        check_chat(&body).map_err(|refusal| refusal.message)
    }

    #[test]
    fn what_is_of_the_wrong_type_or_has_no_place_is_told() {
        // Schemas are anybody's; so are parameters that have left the types.
        chat(&json!({"functions_of_old": 1})).unwrap();
        let refused = |changes: Value| chat(&changes).unwrap_err();
        assert!(refused(json!({"temperature": "hot"})).contains("\"hot\", expected f32"));
        assert!(refused(json!({"reasoning_effort": "utmost"})).contains("utmost"));
        let tools = json!([{"type": "function", "function": {"name": "read", "paramters": {}}}]);
        let told = refused(json!({"tools": tools}));
        assert!(
            told.contains("`tools[0].function.paramters` is not known"),
            "{told}"
        );
        let response = check_response(&json!({"model": "gpt-5", "input": [], "text": {"size": 1}}));
        let told = response.unwrap_err().message;
        assert!(told.contains("`text.size` is not known"), "{told}");
    }

    /// The data of events, but for the word at the end of a stream.
    fn data(events: Vec<String>) -> Vec<String> {
        let data = |event: String| {
            let line = event.lines().find_map(|line| line.strip_prefix("data: "))?;
            (line != "[DONE]").then(|| line.to_owned())
        };
        events.into_iter().filter_map(data).collect()
    }

    #[test]
    fn clients_that_use_the_types_can_read_what_the_stubs_say() {
        let turns = [
            Turn::says("It is a lighthouse."),
            Turn::calls("read", json!({"path": "/a.txt"})),
        ];
        for turn in &turns {
            let completion = answer::completion(turn, 0, "gpt-4.1", 100);
            let read: CreateChatCompletionResponse =
                serde_json::from_value(completion.clone()).unwrap();
            let message = &read.choices[0].message;
            assert_ne!(message.content.is_some(), message.tool_calls.is_some());
            let chunks = data(answer::chunks(&completion, &json!({"stream": true})));
            assert!(chunks.len() > 1);
            for chunk in chunks {
                serde_json::from_str::<CreateChatCompletionStreamResponse>(&chunk)
                    .unwrap_or_else(|error| panic!("{error}: {chunk}"));
            }
            let body = json!({"model": "gpt-5", "input": "What is in it?"});
            let Reply::Json(response) = responses::reply(turn, 0, &body, 100) else {
                panic!("no JSON")
            };
            let read: Response = serde_json::from_value(response).unwrap();
            assert_eq!(read.output.len(), 1);
            let body = json!({"model": "gpt-5", "input": "What is in it?", "stream": true});
            let Reply::Events(events) = responses::reply(turn, 0, &body, 100) else {
                panic!("no events")
            };
            for event in data(events) {
                serde_json::from_str::<ResponseStreamEvent>(&event)
                    .unwrap_or_else(|error| panic!("{error}: {event}"));
            }
        }
    }
}
