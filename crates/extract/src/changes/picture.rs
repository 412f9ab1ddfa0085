//! Pictures before and after: what can be said of them in words.

use std::io::Read as _;

use super::Content;
use crate::error::ExtractError;
use crate::picture;

/// How much of a picture is read: enough for the headers of all kinds, with metadata before them.
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
}

pub(super) fn facts(content: &dyn Content) -> Result<PictureFacts, ExtractError> {
    let mut beginning = Vec::new();
    content
        .read()
        .and_then(|reader| reader.take(BEGINNING).read_to_end(&mut beginning))
        .map_err(ExtractError::read)?;
    let size = picture::dimensions(&beginning);
    Ok(PictureFacts {
        mime: picture::mime(&beginning),
        width: size.map(|size| size.0),
        height: size.map(|size| size.1),
    })
}
