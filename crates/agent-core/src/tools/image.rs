//! What a picture is and how many tokens it costs (`spec/agents.md` §15.3).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The media type that the data shows, since file names and servers are often wrong.
pub(crate) fn media_type(base64: &str) -> Option<&'static str> {
    // Four characters are three bytes; no signature is longer than twelve.
    let head = base64
        .get(..16)
        .and_then(|head| STANDARD.decode(head).ok())?;
    formats::media::picture_type(&head)
}

/// Estimated prompt tokens of the picture at `url` for a model; 0 where the size or the model's
/// way of counting is not known.
pub(crate) fn tokens(url: &str, provider: &str, model: &str) -> u64 {
    let Some((width, height)) = llm_client::tokens::picture_size(url) else {
        return 0;
    };
    let (width, height) = (u64::from(width), u64::from(height));
    let tiles = |edge: u64| width.div_ceil(edge).saturating_mul(height.div_ceil(edge));
    let model = model.to_lowercase();
    if provider == "anthropic" || model.contains("anthropic") || model.contains("claude") {
        tiles(28).min(4784)
    } else if provider == "openai" || model.contains("gpt-5") || model.contains("openai") {
        tiles(32).saturating_mul(6).div_ceil(5).min(12_000)
    } else if provider == "gemini" || model.contains("gemini") {
        tiles(768).max(1).saturating_mul(258)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 0]);
        bytes
    }

    fn url(bytes: &[u8]) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(bytes))
    }

    #[test]
    fn the_type_is_read_from_the_data() {
        for (bytes, expected) in [
            (png(1, 1), Some("image/png")),
            (
                b"\xFF\xD8\xFF\xE0\0\x10JFIF\0\x01".to_vec(),
                Some("image/jpeg"),
            ),
            (b"GIF89a\x01\0\x01\0\0\0".to_vec(), Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8X".to_vec(), Some("image/webp")),
            (b"%PDF-1.7 and so on".to_vec(), None),
        ] {
            assert_eq!(media_type(&STANDARD.encode(bytes)), expected);
        }
        assert_eq!(media_type("not base64 at all!"), None);
        assert_eq!(media_type(""), None);
    }

    #[test]
    fn tokens_follow_the_vendor() {
        let url = url(&png(220, 220));
        // 8·8 tiles of 28 px; 7·7 tiles of 32 px times 1.2; one tile of 768 px.
        assert_eq!(tokens(&url, "anthropic", "claude-x"), 64);
        assert_eq!(tokens(&url, "openai", "fake"), 59);
        assert_eq!(tokens(&url, "gemini", "gemini-x"), 258);
        assert_eq!(tokens(&url, "ollama", "llava"), 0);
        assert_eq!(tokens(&url, "openrouter", "claude-x"), 64);
        let huge = format!(
            "data:image/png;base64,{}",
            STANDARD.encode(png(30_000, 30_000))
        );
        assert_eq!(tokens(&huge, "anthropic", "c"), 4784);
        assert_eq!(tokens(&huge, "openai", "o"), 12_000);
    }
}
