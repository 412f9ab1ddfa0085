//! `read_image_file` (§2.5).

use rmcp::model::JsonObject;

use super::open;
use crate::tools::{Call, Output, ToolError};

const WHAT: &str = "read image file";
const FORMATS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The bytes unchanged. The media type is the content's: files with a wrong extension are common, and providers refuse a
/// picture whose type is wrongly stated.
pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let path = super::file_path(arguments)?;
    let extension = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    if !FORMATS.contains(&extension.as_str()) {
        let formats = FORMATS.join(", ");
        return Err(ToolError::failed(format!(
            "Unsupported image format: {extension}. Supported formats: {formats}"
        )));
    }
    let content = call
        .root
        .open()
        .map_err(open::ReadError::from)
        .and_then(|world| {
            open::read(
                &world,
                &path,
                call.limits.max_image_bytes,
                "max_image_bytes",
            )
        })
        .map_err(|error| error.into_tool_error(WHAT, &path))?;
    match formats::media::picture_type(&content.bytes) {
        Some(media_type) => Ok(Output::Image {
            data: content.bytes,
            media_type,
        }),
        None => Err(ToolError::failed(format!(
            "Failed to {WHAT}: {path}: the content is none of {}, whatever its name says",
            FORMATS.join(", ")
        ))),
    }
}
