//! Pictures before and after: what can be said of them in words, and the pictures themselves, small
//! enough for a page.

use std::io::Read as _;

use super::{ChangeLimits, Content};
use crate::error::ExtractError;
use crate::picture;

/// How much of a picture is read that is too large for a preview: enough for the headers of all
/// kinds, with metadata before them.
const BEGINNING: u64 = 1 << 20;

/// Kind and size of a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureFacts {
    /// The MIME type by its first bytes; absent where it is no picture, whatever its name.
    pub mime: Option<&'static str>,
    /// Width in pixels, where the header can be read.
    pub width: Option<u32>,
    /// Height in pixels, where the header can be read.
    pub height: Option<u32>,
    /// The picture as `data:` URI: as it is where it is small, else scaled down. Absent where it
    /// crosses a limit, or cannot be decoded.
    pub preview: Option<String>,
}

pub(super) fn facts(
    content: &dyn Content,
    limits: &ChangeLimits,
) -> Result<PictureFacts, ExtractError> {
    let whole = limits.previews && content.size() <= limits.documents.picture_bytes as u64;
    let allowed = if whole { content.size() } else { BEGINNING };
    let mut bytes = Vec::new();
    content
        .read()
        .and_then(|reader| reader.take(allowed).read_to_end(&mut bytes))
        .map_err(ExtractError::read)?;
    let mime = picture::mime(&bytes);
    let size = picture::dimensions(&bytes);
    let preview = match mime {
        Some(mime) if whole => preview(&bytes, mime, limits),
        _ => None,
    };
    Ok(PictureFacts {
        mime,
        width: size.map(|size| size.0),
        height: size.map(|size| size.1),
        preview,
    })
}

fn preview(bytes: &[u8], mime: &str, limits: &ChangeLimits) -> Option<String> {
    if bytes.len() <= limits.preview_bytes {
        return Some(picture::uri(mime, bytes));
    }
    let edge = limits.preview_edge;
    let small = picture::decoded(bytes, limits.preview_memory_bytes)?.thumbnail(edge, edge);
    let (kind, small) = picture::encoded(small)?;
    (small.len() <= limits.preview_bytes).then(|| picture::uri(kind, &small))
}
