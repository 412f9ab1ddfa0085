//! One picture made to fit limits of pixels and bytes.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::imageops::FilterType;
use image::{DynamicImage, ImageReader, Limits};

/// What a picture may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fit {
    /// Pixels of the longer side.
    pub(super) side: u32,
    /// Characters of base64.
    pub(super) base64: usize,
}

/// Largest picture that is decoded: pixels of a side, and bytes of memory.
const LARGEST_SIDE: u32 = 40_000;
const MOST_MEMORY: u64 = 512 * 1024 * 1024;

const QUALITIES: [u8; 4] = [85, 70, 50, 30];

/// Below this many pixels of the longer side a picture is not scaled further.
const SMALLEST_SIDE: u32 = 256;

/// Whether the picture in a data URL fits as it is. One whose size cannot be read has to fit by its
/// bytes alone.
pub(super) fn fits(url: &str, fit: Fit) -> bool {
    let within = llm_client::tokens::picture_size(url)
        .is_none_or(|(width, height)| width.max(height) <= fit.side);
    within && base64_of(url).is_none_or(|data| data.len() <= fit.base64)
}

/// The base64 data of a data URL.
pub(super) fn base64_of(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(data)
}

/// The picture as a data URL that fits, or nothing when the data is no picture that can be read.
pub(super) fn shrink(url: &str, fit: Fit) -> Option<String> {
    let bytes = STANDARD.decode(base64_of(url)?).ok()?;
    let mut picture = decode(&bytes)?;
    if picture.width().max(picture.height()) > fit.side {
        picture = picture.resize(fit.side, fit.side, FilterType::Lanczos3);
    }
    let most_bytes = fit.base64 / 4 * 3;
    if picture.color().has_alpha()
        && let Some(png) = png(&picture)
        && png.len() <= most_bytes
    {
        return Some(data_url("image/png", &png));
    }
    let mut opaque = DynamicImage::ImageRgb8(picture.to_rgb8());
    for quality in QUALITIES {
        let jpeg = jpeg(&opaque, quality)?;
        if jpeg.len() <= most_bytes {
            return Some(data_url("image/jpeg", &jpeg));
        }
    }
    loop {
        let side = opaque.width().max(opaque.height()) / 4 * 3;
        opaque = opaque.resize(side.max(1), side.max(1), FilterType::Lanczos3);
        let jpeg = jpeg(&opaque, QUALITIES[QUALITIES.len() - 1])?;
        if jpeg.len() <= most_bytes || side <= SMALLEST_SIDE {
            return Some(data_url("image/jpeg", &jpeg));
        }
    }
}

fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(LARGEST_SIDE);
    limits.max_image_height = Some(LARGEST_SIDE);
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    reader.decode().ok()
}

fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder =
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, PngFilter::Adaptive);
    picture.write_with_encoder(encoder).ok()?;
    Some(bytes)
}

fn jpeg(picture: &DynamicImage, quality: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    picture.write_with_encoder(encoder).ok()?;
    Some(bytes)
}

fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage, Rgba, RgbaImage};

    use super::*;

    /// Noise that no codec makes small.
    fn noise(width: u32, height: u32) -> DynamicImage {
        let mut state = 1u32;
        DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = state.to_be_bytes();
            Rgb([a, b, c])
        }))
    }

    fn url(picture: &DynamicImage) -> String {
        data_url("image/png", &png(picture).unwrap())
    }

    fn size(url: &str) -> (u32, u32) {
        llm_client::tokens::picture_size(url).unwrap()
    }

    #[test]
    fn too_many_pixels_are_scaled_with_their_aspect() {
        let fit = Fit {
            side: 100,
            base64: 1 << 20,
        };
        let before = url(&noise(400, 200));
        assert!(!fits(&before, fit));
        let after = shrink(&before, fit).unwrap();
        assert_eq!(size(&after), (100, 50));
        assert!(after.starts_with("data:image/jpeg;base64,") && fits(&after, fit));
        assert!(fits(&url(&noise(100, 100)), fit));
    }

    #[test]
    fn too_many_bytes_cost_quality_and_then_size() {
        let before = url(&noise(400, 400));
        for base64 in [250_000, 70_000, 30_000] {
            let fit = Fit { side: 8000, base64 };
            let after = shrink(&before, fit).unwrap();
            assert!(fits(&after, fit), "{base64}: {}", after.len());
        }
        // At 256 pixels it ends, whatever the limit is.
        let after = shrink(
            &before,
            Fit {
                side: 8000,
                base64: 10,
            },
        )
        .unwrap();
        assert!(size(&after).0 <= 256, "{:?}", size(&after));
    }

    #[test]
    fn transparency_is_kept_where_it_fits() {
        let clear = RgbaImage::from_fn(300, 300, |x, _| Rgba([9, 9, 9, (x % 2) as u8 * 255]));
        let before = url(&DynamicImage::ImageRgba8(clear));
        let after = shrink(
            &before,
            Fit {
                side: 100,
                base64: 1 << 20,
            },
        )
        .unwrap();
        assert!(after.starts_with("data:image/png;base64,"));
        assert_eq!(size(&after), (100, 100));
    }

    #[test]
    fn what_is_no_picture_is_left() {
        let fit = Fit {
            side: 100,
            base64: 10,
        };
        for url in [
            "data:image/png;base64,AAAA",
            "data:image/png;base64,?",
            "https://x/y.png",
        ] {
            assert_eq!(shrink(url, fit), None);
        }
    }
}
