//! From a tool's result to messages (`spec/agents.md` §9, pitfalls A8 and A9).

use formats::chat::{Block, Message};

use super::image;
use super::output::{ToolContent, ToolOutput};

/// The messages of one result.
#[derive(Debug, PartialEq)]
pub(crate) struct RenderedResult {
    /// The answer to the call: exactly one.
    pub(crate) message: Message,
    /// Pictures that the model's provider takes only from the user, to be sent after all answers
    /// of the step.
    pub(crate) deferred: Vec<Message>,
}

/// Whether the provider of `model` takes pictures inside a tool message.
pub(crate) fn has_images_inside(model: &str) -> bool {
    model.starts_with("anthropic/")
}

/// The messages for `output`, which answers the call `id` of the tool `name`.
pub(crate) fn render(id: &str, name: &str, output: ToolOutput, model: &str) -> RenderedResult {
    let inside = has_images_inside(model);
    let show_structured = output.is_error || says_nothing(&output.content);
    let mut blocks = Vec::with_capacity(output.content.len());
    let mut pictures = Vec::new();
    for part in output.content {
        match part {
            ToolContent::Image { data, media_type } if !data.trim().is_empty() => {
                let block = Block::image_url(data_url(&data, &media_type));
                if inside {
                    blocks.push(block);
                } else {
                    pictures.push(block);
                }
            }
            other => push_text(&mut blocks, words_for(other)),
        }
    }
    if show_structured && let Some(data) = &output.structured {
        push_text(&mut blocks, data.to_string());
    }
    if blocks.is_empty() {
        blocks.push(Block::text(if !pictures.is_empty() {
            format!("The tool `{name}` returned {}.", count(pictures.len()))
        } else if output.is_error {
            format!("The tool `{name}` failed without saying why.")
        } else {
            format!("The tool `{name}` returned nothing.")
        }));
    }
    RenderedResult {
        message: Message::tool(id, name, blocks),
        deferred: pictures
            .into_iter()
            .map(|block| {
                let mut message = Message::user(String::new());
                message.content = Some(vec![block].into());
                message
            })
            .collect(),
    }
}

fn says_nothing(content: &[ToolContent]) -> bool {
    content.iter().all(|part| match part {
        ToolContent::Text(text) => text.trim().is_empty(),
        _ => false,
    })
}

fn count(pictures: usize) -> String {
    match pictures {
        1 => "one image, which follows".to_owned(),
        more => format!("{more} images, which follow"),
    }
}

/// Blank text blocks are refused by providers.
fn push_text(blocks: &mut Vec<Block>, text: String) {
    if !text.trim().is_empty() {
        blocks.push(Block::text(text));
    }
}

fn data_url(data: &str, declared: &str) -> String {
    let media_type = image::media_type(data).unwrap_or(match declared.trim() {
        "" => "application/octet-stream",
        declared => declared,
    });
    format!("data:{media_type};base64,{data}")
}

/// What stands for a part in text.
fn words_for(part: ToolContent) -> String {
    match part {
        ToolContent::Text(text) => text,
        ToolContent::Image { media_type, .. } => format!("[image without data: {media_type}]"),
        ToolContent::Audio { data, media_type } => {
            format!("[audio: {media_type}, {}; not shown]", size_of(&data))
        }
        ToolContent::TextResource { uri, text } => format!("[resource {uri}]\n{text}"),
        ToolContent::BlobResource {
            uri,
            data,
            media_type,
        } => format!(
            "[binary resource {uri}: {}, {}; not shown]",
            media_type.as_deref().unwrap_or("unknown type"),
            size_of(&data)
        ),
        ToolContent::Link {
            uri,
            name,
            description,
            media_type,
            size,
        } => {
            let mut text = format!("[link to resource {uri}: {name}");
            text.extend(media_type.map(|kind| format!(", {kind}")));
            text.extend(size.map(|bytes| format!(", {bytes} bytes")));
            text.push(']');
            text.extend(description.map(|about| format!(" {about}")));
            text
        }
        ToolContent::Other(value) => value.to_string(),
    }
}

/// Decoded size of base64 data.
fn size_of(base64: &str) -> String {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    format!("{} bytes", (base64.len() * 3 / 4).saturating_sub(padding))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;

    /// The pitfall's result: every kind of part at once.
    fn everything() -> ToolOutput {
        let png =
            STANDARD.encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0");
        ToolOutput {
            content: vec![
                ToolContent::Text("hello".into()),
                ToolContent::Image {
                    data: png,
                    media_type: "image/jpeg".into(),
                },
                ToolContent::TextResource {
                    uri: "file:///notes.txt".into(),
                    text: "inner text".into(),
                },
                ToolContent::BlobResource {
                    uri: "file:///a.pdf".into(),
                    data: STANDARD.encode(b"%PDF-"),
                    media_type: Some("application/pdf".into()),
                },
                ToolContent::Link {
                    uri: "file:///b.csv".into(),
                    name: "b.csv".into(),
                    description: Some("numbers".into()),
                    media_type: Some("text/csv".into()),
                    size: Some(12),
                },
                ToolContent::Audio {
                    data: STANDARD.encode(b"abcd"),
                    media_type: "audio/wav".into(),
                },
                ToolContent::Other(json!({"type": "hologram", "x": 1})),
            ],
            structured: None,
            is_error: false,
        }
    }

    fn texts(message: &Message) -> Vec<String> {
        let blocks = message.content.as_ref().unwrap().blocks();
        blocks
            .iter()
            .map(|block| match block.as_image_url() {
                Some(url) => url.chars().take(22).collect(),
                None => block.as_text().unwrap().to_owned(),
            })
            .collect()
    }

    const WORDS: [&str; 5] = [
        "[resource file:///notes.txt]\ninner text",
        "[binary resource file:///a.pdf: application/pdf, 5 bytes; not shown]",
        "[link to resource file:///b.csv: b.csv, text/csv, 12 bytes] numbers",
        "[audio: audio/wav, 4 bytes; not shown]",
        r#"{"type":"hologram","x":1}"#,
    ];

    #[test]
    fn anthropic_takes_pictures_inside_and_in_order() {
        let result = render("c1", "t", everything(), "anthropic/claude-x");
        let mut expected = vec!["hello", "data:image/png;base64,"];
        expected.extend(WORDS);
        assert_eq!(texts(&result.message), expected);
        assert!(result.deferred.is_empty());
    }

    #[test]
    fn others_get_pictures_from_the_user_afterwards() {
        for model in ["openai/gpt-x", "gemini/g", "bedrock/anthropic.claude"] {
            let result = render("c1", "t", everything(), model);
            let mut expected = vec!["hello"];
            expected.extend(WORDS);
            assert_eq!(texts(&result.message), expected, "{model}");
            assert_eq!(result.deferred.len(), 1);
            assert_eq!(
                texts(result.deferred.first().unwrap()),
                ["data:image/png;base64,"]
            );
        }
    }

    fn only_text(output: ToolOutput) -> String {
        let result = render("c1", "t", output, "openai/x");
        match texts(&result.message).as_slice() {
            [one] => one.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_said_in_words() {
        let nothing = "The tool `t` returned nothing.";
        assert_eq!(only_text(ToolOutput::default()), nothing);
        assert_eq!(only_text(ToolOutput::text("")), nothing);
        assert_eq!(only_text(ToolOutput::text(" \n")), nothing);
        let failed = ToolOutput {
            is_error: true,
            ..ToolOutput::default()
        };
        assert_eq!(only_text(failed), "The tool `t` failed without saying why.");
        let picture = ToolOutput::image("aGVsbG8gd29ybGQh", "image/x-odd");
        assert_eq!(
            only_text(picture),
            "The tool `t` returned one image, which follows."
        );
    }

    #[test]
    fn structured_content_is_shown_where_it_is_the_only_word() {
        let data = Some(json!({"code": 7}));
        let error = ToolOutput {
            content: Vec::new(),
            structured: data.clone(),
            is_error: true,
        };
        assert_eq!(only_text(error), r#"{"code":7}"#);
        let alone = ToolOutput {
            content: Vec::new(),
            structured: data.clone(),
            is_error: false,
        };
        assert_eq!(only_text(alone), r#"{"code":7}"#);
        let beside = ToolOutput {
            structured: data,
            ..ToolOutput::text("said")
        };
        assert_eq!(only_text(beside), "said");
    }

    #[test]
    fn the_message_has_the_shape_of_the_reference() {
        let result = render("c1", "t", ToolOutput::text("x"), "openai/x");
        assert_eq!(
            serde_json::to_value(&result.message).unwrap(),
            json!({"role": "tool", "content": [{"type": "text", "text": "x"}],
                   "tool_call_id": "c1", "name": "t"})
        );
        let result = render("c1", "t", ToolOutput::image("aGk=", "image/x"), "openai/x");
        let picture: Value = serde_json::to_value(&result.deferred).unwrap();
        assert_eq!(
            picture,
            json!([{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/x;base64,aGk="}}]}])
        );
    }
}
