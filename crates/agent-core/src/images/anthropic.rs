//! What Anthropic takes of pictures in one request (`spec/agents.md` §16.1).

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use formats::chat::{Block, Content, KnownBlock, Message, ToolDefinition};

use super::shrink::{Fit, base64_of, fits, shrink};

/// Most pictures in a request.
const MOST_PICTURES: usize = 600;

/// From this many pictures on, each may have fewer pixels.
const MANY_PICTURES: usize = 20;
const SIDE_OF_MANY: u32 = 2000;
const SIDE_OF_FEW: u32 = 8000;

/// Most bytes of a request, and of the base64 of one picture.
const REQUEST_BYTES: usize = 32 * 1024 * 1024;
const PICTURE_BYTES: usize = 5 * 1024 * 1024;

/// What a picture takes in a request beside its data.
const BLOCK_BYTES: usize = 80;

/// The rules and what was made of pictures by them, so that each is worked on once in a run.
#[derive(Debug, Default)]
pub(crate) struct ImagePolicy {
    /// By the hash of a picture: what was made of it; nothing for data that cannot be read.
    made: HashMap<u64, Option<String>>,
}

/// The pictures of one request that do not fit.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    fit: Fit,
    /// Hash and data URL of each on which work is still to be done.
    open: Vec<(u64, String)>,
}

impl Work {
    /// Whether everything was made for an earlier request.
    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Makes the pictures fit; takes a while.
    pub(crate) fn carry_out(self) -> Vec<(u64, Option<String>)> {
        let made = |(key, url): (u64, String)| (key, shrink(&url, self.fit));
        self.open.into_iter().map(made).collect()
    }
}

impl ImagePolicy {
    /// Whether requests to the model called `model` follow these rules.
    pub(crate) fn applies_to(model: &str) -> bool {
        model.starts_with("anthropic/")
    }

    /// What has to be done before the conversation can be sent; nothing where it can be sent as it
    /// is. Pictures that have only an address pass.
    ///
    /// # Errors
    /// The reason, when there are too many pictures: whatever is made of them, the provider would
    /// refuse.
    pub(crate) fn plan(
        &self,
        messages: &[Message],
        tools: &[ToolDefinition],
    ) -> Result<Option<Work>, String> {
        let pictures = urls(messages).count();
        if pictures > MOST_PICTURES {
            return Err(format!(
                "the conversation has {pictures} images, exceeding the maximum of {MOST_PICTURES}"
            ));
        }
        let embedded = urls(messages)
            .filter(|url| base64_of(url).is_some())
            .count();
        if embedded == 0 {
            return Ok(None);
        }
        let others = size_without_pictures(messages, tools) + pictures * BLOCK_BYTES;
        let fit = Fit {
            side: match pictures >= MANY_PICTURES {
                true => SIDE_OF_MANY,
                false => SIDE_OF_FEW,
            },
            base64: (REQUEST_BYTES.saturating_sub(others) / embedded).min(PICTURE_BYTES),
        };
        let large: Vec<&str> = urls(messages).filter(|url| !fits(url, fit)).collect();
        if large.is_empty() {
            return Ok(None);
        }
        let mut open: Vec<(u64, String)> = Vec::new();
        for url in large {
            let key = key_of(url);
            let stands = match self.made.get(&key) {
                Some(Some(made)) => fits(made, fit),
                // It cannot be read: nothing can be done.
                Some(None) => true,
                None => open.iter().any(|(known, _)| *known == key),
            };
            if !stands {
                open.push((key, url.to_owned()));
            }
        }
        Ok(Some(Work { fit, open }))
    }

    /// Keeps what was made for later requests.
    pub(crate) fn keep(&mut self, made: Vec<(u64, Option<String>)>) {
        self.made.extend(made);
    }

    /// The conversation as it can be sent.
    pub(crate) fn apply(&self, work: &Work, messages: &[Message]) -> Vec<Message> {
        let mut copy = messages.to_vec();
        for url in copy.iter_mut().flat_map(urls_mut) {
            if !fits(url, work.fit)
                && let Some(Some(made)) = self.made.get(&key_of(url))
            {
                url.clone_from(made);
            }
        }
        copy
    }
}

fn key_of(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}

fn blocks(message: &Message) -> &[Block] {
    match &message.content {
        Some(Content::Blocks(blocks)) => blocks,
        _ => &[],
    }
}

fn urls(messages: &[Message]) -> impl Iterator<Item = &str> {
    messages
        .iter()
        .flat_map(blocks)
        .filter_map(Block::as_image_url)
}

fn urls_mut(message: &mut Message) -> impl Iterator<Item = &mut String> {
    let blocks = match &mut message.content {
        Some(Content::Blocks(blocks)) => blocks.as_mut_slice(),
        _ => &mut [],
    };
    blocks.iter_mut().filter_map(|block| match block {
        Block::Known(KnownBlock::ImageUrl { image_url, .. })
            if base64_of(&image_url.url).is_some() =>
        {
            Some(&mut image_url.url)
        }
        _ => None,
    })
}

/// Estimated bytes of everything that is no picture.
fn size_without_pictures(messages: &[Message], tools: &[ToolDefinition]) -> usize {
    let of_message = |message: &Message| {
        let ids = [&message.tool_call_id, &message.name];
        let calls = message
            .tool_calls
            .iter()
            .map(|call| call.id.len() + call.function.name.len() + call.function.arguments.len());
        message.text().len()
            + ids.into_iter().flatten().map(String::len).sum::<usize>()
            + calls.sum::<usize>()
    };
    let of_tool = |tool: &ToolDefinition| {
        let function = &tool.function;
        function.name.len() + function.description.len() + function.parameters.to_string().len()
    };
    messages.iter().map(of_message).sum::<usize>() + tools.iter().map(of_tool).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grey picture of so many pixels on the longer side.
    fn picture(side: u32) -> String {
        use base64::Engine;
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::DynamicImage::ImageLuma8(image::GrayImage::new(side, 10.min(side)))
            .write_to(&mut bytes, image::ImageFormat::Png)
            .unwrap();
        let data = base64::engine::general_purpose::STANDARD.encode(bytes.into_inner());
        format!("data:image/png;base64,{data}")
    }

    fn with(pictures: impl IntoIterator<Item = String>) -> Vec<Message> {
        let mut message = Message::user("");
        let blocks: Vec<Block> = pictures.into_iter().map(Block::image_url).collect();
        message.content = Some(blocks.into());
        vec![Message::user("look"), message]
    }

    fn sides(messages: &[Message]) -> Vec<u32> {
        let size = |url| llm_client::tokens::picture_size(url).unwrap().0;
        urls(messages).map(size).collect()
    }

    /// What would be sent.
    fn fitting(policy: &mut ImagePolicy, messages: &[Message]) -> Option<Vec<Message>> {
        let work = policy.plan(messages, &[]).unwrap()?;
        policy.keep(work.clone().carry_out());
        Some(policy.apply(&work, messages))
    }

    #[test]
    fn what_fits_is_not_copied() {
        let mut policy = ImagePolicy::default();
        assert_eq!(fitting(&mut policy, &[Message::user("x")]), None);
        assert_eq!(fitting(&mut policy, &with(vec![picture(2500); 19])), None);
        let far = with(vec!["https://x/y.png".to_owned(); 30]);
        assert_eq!(fitting(&mut policy, &far), None);
    }

    #[test]
    fn twenty_pictures_may_have_fewer_pixels() {
        let mut many = vec![picture(10); 18];
        many.extend([picture(2500), picture(2500)]);
        let messages = with(many);
        let mut policy = ImagePolicy::default();
        let sent = fitting(&mut policy, &messages).unwrap();
        let mut expected = vec![10; 18];
        expected.extend([2000, 2000]);
        assert_eq!(sides(&sent), expected);
        // The history keeps its own, and the work is done once.
        assert_eq!(sides(&messages)[19], 2500);
        assert_eq!(policy.made.len(), 1);
        assert!(policy.plan(&messages, &[]).unwrap().unwrap().is_done());
        assert_eq!(fitting(&mut policy, &messages).unwrap(), sent);
    }

    #[test]
    fn what_cannot_be_read_is_left_as_it_is() {
        let broken = format!("data:image/png;base64,{}", "A".repeat(6 << 20));
        let messages = with([broken]);
        let mut policy = ImagePolicy::default();
        assert_eq!(fitting(&mut policy, &messages).unwrap(), messages);
        assert!(policy.plan(&messages, &[]).unwrap().unwrap().is_done());
    }

    #[test]
    fn more_than_six_hundred_are_refused() {
        let messages = with(vec![picture(1); 601]);
        let reason = ImagePolicy::default().plan(&messages, &[]).unwrap_err();
        assert_eq!(
            reason,
            "the conversation has 601 images, exceeding the maximum of 600"
        );
    }
}
