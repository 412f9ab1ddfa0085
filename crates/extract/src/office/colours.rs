//! Colours of office documents: as numbers, from the palette of old programs, from the theme.

use super::xml::{Node, attribute, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

/// The palette that a workbook has unless it brings its own; the first eight stand twice.
const PALETTE: [&str; 56] = [
    "000000", "FFFFFF", "FF0000", "00FF00", "0000FF", "FFFF00", "FF00FF", "00FFFF", "800000",
    "008000", "000080", "808000", "800080", "008080", "C0C0C0", "808080", "9999FF", "993366",
    "FFFFCC", "CCFFFF", "660066", "FF8080", "0066CC", "CCCCFF", "000080", "FF00FF", "FFFF00",
    "00FFFF", "800080", "800000", "008080", "0000FF", "00CCFF", "CCFFFF", "CCFFCC", "FFFF99",
    "99CCFF", "FF99CC", "CC99FF", "FFCC99", "3366FF", "33CCCC", "99CC00", "FFCC00", "FF9900",
    "FF6600", "666699", "969696", "003366", "339966", "003300", "333300", "993300", "993366",
    "333399", "333333",
];

/// The colours of a theme in the order in which cells number them.
const THEME: [&str; 12] = [
    "lt1", "dk1", "lt2", "dk2", "accent1", "accent2", "accent3", "accent4", "accent5", "accent6",
    "hlink", "folHlink",
];

/// A colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Colour {
    /// `#RRGGBB`; absent where the document does not say what its theme's colour is.
    pub rgb: Option<String>,
    /// Number in the theme and tint, where the colour comes from there.
    pub theme: Option<(usize, f64)>,
}

impl Colour {
    /// A colour of six or eight hexadecimal digits, of which the first two of eight are opacity.
    pub(super) fn of_hex(text: &str) -> Option<Self> {
        let digits = text.trim().trim_start_matches('#');
        let digits = match digits.len() {
            8 => digits.get(2..)?,
            6 => digits,
            _ => return None,
        };
        let valid = digits.chars().all(|c| c.is_ascii_hexdigit());
        valid.then(|| Self {
            rgb: Some(format!("#{}", digits.to_uppercase())),
            theme: None,
        })
    }
}

/// What colours of a document refer to.
#[derive(Debug, Default)]
pub(super) struct Palette {
    /// The document's own palette.
    pub(super) indexed: Vec<String>,
    theme: [Option<[u8; 3]>; 12],
}

impl Palette {
    pub(super) fn indexed(&self, number: usize) -> Option<Colour> {
        if let Some(own) = self.indexed.get(number) {
            return Colour::of_hex(own);
        }
        let at = if number < 8 { number } else { number - 8 };
        PALETTE.get(at).and_then(|hex| Colour::of_hex(hex))
    }

    pub(super) fn themed(&self, number: usize, tint: f64) -> Colour {
        let base = self.theme.get(number).copied().flatten();
        Colour {
            rgb: base.map(|base| {
                let [r, g, b] = tinted(base, tint);
                format!("#{r:02X}{g:02X}{b:02X}")
            }),
            theme: Some((number, tint)),
        }
    }

    /// Takes the colours of a theme file.
    pub(super) fn read_theme(
        &mut self,
        xml: &str,
        format: &'static str,
        limits: &Limits,
    ) -> Result<(), ExtractError> {
        let mut current = None;
        walk(xml, format, limits, |node| match node {
            Node::Open("srgbClr" | "sysClr", element) => {
                let hex = attribute(element, "lastClr").or_else(|| attribute(element, "val"));
                if let (Some(at), Some(rgb)) = (current, hex.as_deref().and_then(bytes)) {
                    let slot: &mut Option<[u8; 3]> = &mut self.theme[at];
                    slot.get_or_insert(rgb);
                }
            }
            Node::Open(name, _) => {
                current = THEME.iter().position(|known| *known == name).or(current);
            }
            Node::Close("clrScheme") => current = None,
            Node::Close(_) | Node::Text(_) => {}
        })
    }
}

fn bytes(hex: &str) -> Option<[u8; 3]> {
    if hex.len() != 6 || !hex.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    Some([byte(0)?, byte(2)?, byte(4)?])
}

/// The colour made darker (below 0) or lighter (above 0): its lightness in HSL is scaled.
fn tinted(rgb: [u8; 3], tint: f64) -> [u8; 3] {
    if tint == 0.0 {
        return rgb;
    }
    let (hue, saturation, lightness) = hsl(rgb);
    let tint = tint.clamp(-1.0, 1.0);
    let lightness = if tint < 0.0 {
        lightness * (1.0 + tint)
    } else {
        lightness * (1.0 - tint) + tint
    };
    of_hsl(hue, saturation, lightness)
}

/// Hue in sixths of the circle, saturation and lightness from 0 to 1.
fn hsl(rgb: [u8; 3]) -> (f64, f64, f64) {
    let [r, g, b] = rgb.map(|byte| f64::from(byte) / 255.0);
    let (max, min) = (r.max(g).max(b), r.min(g).min(b));
    let lightness = f64::midpoint(max, min);
    let range = max - min;
    if range == 0.0 {
        return (0.0, 0.0, lightness);
    }
    let saturation = range / (1.0 - (2.0 * lightness - 1.0).abs());
    let hue = if max.to_bits() == r.to_bits() {
        ((g - b) / range).rem_euclid(6.0)
    } else if max.to_bits() == g.to_bits() {
        (b - r) / range + 2.0
    } else {
        (r - g) / range + 4.0
    };
    (hue, saturation, lightness)
}

fn of_hsl(hue: f64, saturation: f64, lightness: f64) -> [u8; 3] {
    let chroma = (1.0 - (2.0 * lightness - 1.0).abs()) * saturation;
    let second = chroma * (1.0 - (hue % 2.0 - 1.0).abs());
    let (r, g, b) = match hue {
        hue if hue < 1.0 => (chroma, second, 0.0),
        hue if hue < 2.0 => (second, chroma, 0.0),
        hue if hue < 3.0 => (0.0, chroma, second),
        hue if hue < 4.0 => (0.0, second, chroma),
        hue if hue < 5.0 => (second, 0.0, chroma),
        _ => (chroma, 0.0, second),
    };
    let base = lightness - chroma / 2.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a byte"
    )]
    [r, g, b].map(|part| ((part + base) * 255.0).round().clamp(0.0, 255.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_all_kinds() {
        let hex = |colour: Option<Colour>| colour.and_then(|colour| colour.rgb);
        assert_eq!(hex(Colour::of_hex("FFff0000")).as_deref(), Some("#FF0000"));
        assert_eq!(hex(Colour::of_hex("red")), None);
        let palette = Palette::default();
        assert_eq!(hex(palette.indexed(10)).as_deref(), Some("#FF0000"));
        assert_eq!(hex(palette.indexed(64)), None);
        assert_eq!(palette.themed(4, 0.0).rgb, None);
    }

    #[test]
    fn tints_change_the_lightness_alone() {
        // The lighter and darker tones that office programs offer of this blue.
        for (tint, expected) in [
            (0.8, [0xDD, 0xEB, 0xF7]),
            (0.4, [0x9C, 0xC3, 0xE6]),
            (-0.25, [0x2F, 0x75, 0xB5]),
        ] {
            let found = tinted([0x5B, 0x9B, 0xD5], tint);
            let near = found
                .iter()
                .zip(expected)
                .all(|(a, b): (&u8, u8)| a.abs_diff(b) <= 2);
            assert!(near, "{tint}: {found:02X?}");
        }
    }
}
