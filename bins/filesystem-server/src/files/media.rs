//! Media types, guessed from names for listings.

use std::path::Path;

/// Media types and the extensions that stand for them: the names that Python's `mimetypes` knows without help of the
/// system (§2.9), so that listings are the same on every machine. Office formats and YAML, for example, are unknown.
const TYPES: &[(&str, &[&str])] = &[
    ("application/json", &["json"]),
    ("application/manifest+json", &["webmanifest"]),
    ("application/msword", &["doc", "dot", "wiz"]),
    (
        "application/octet-stream",
        &["a", "bin", "dll", "exe", "o", "obj", "so"],
    ),
    ("application/pdf", &["pdf"]),
    ("application/postscript", &["ai", "eps", "ps"]),
    ("application/vnd.apple.mpegurl", &["m3u", "m3u8"]),
    ("application/vnd.ms-excel", &["xls", "xlb"]),
    (
        "application/vnd.ms-powerpoint",
        &["ppt", "pot", "ppa", "pps", "pwz"],
    ),
    ("application/wasm", &["wasm"]),
    ("application/x-csh", &["csh"]),
    ("application/x-hdf5", &["h5"]),
    ("application/x-latex", &["latex"]),
    ("application/x-netcdf", &["cdf", "nc"]),
    ("application/x-pkcs12", &["p12", "pfx"]),
    ("application/x-python-code", &["pyc", "pyo"]),
    ("application/x-sh", &["sh"]),
    ("application/x-tar", &["tar"]),
    ("application/x-tcl", &["tcl"]),
    ("application/x-tex", &["tex"]),
    ("application/xml", &["rdf", "wsdl", "xpdl", "xsl"]),
    ("application/zip", &["zip"]),
    ("audio/aac", &["aac", "adts"]),
    ("audio/basic", &["au", "snd"]),
    ("audio/mpeg", &["mp2", "mp3"]),
    ("audio/opus", &["opus"]),
    ("audio/x-aiff", &["aif", "aifc", "aiff"]),
    ("audio/x-wav", &["wav"]),
    ("image/avif", &["avif"]),
    ("image/bmp", &["bmp"]),
    ("image/gif", &["gif"]),
    ("image/heic", &["heic"]),
    ("image/heif", &["heif"]),
    ("image/jpeg", &["jpe", "jpeg", "jpg"]),
    ("image/png", &["png"]),
    ("image/svg+xml", &["svg"]),
    ("image/tiff", &["tif", "tiff"]),
    ("image/vnd.microsoft.icon", &["ico"]),
    ("image/webp", &["webp"]),
    ("image/x-portable-pixmap", &["ppm"]),
    ("message/rfc822", &["eml", "mht", "mhtml", "nws"]),
    ("text/css", &["css"]),
    ("text/csv", &["csv"]),
    ("text/html", &["htm", "html"]),
    ("text/javascript", &["js", "mjs"]),
    ("text/markdown", &["markdown", "md"]),
    ("text/n3", &["n3"]),
    ("text/plain", &["bat", "c", "h", "ksh", "pl", "srt", "txt"]),
    ("text/rtf", &["rtf"]),
    ("text/tab-separated-values", &["tsv"]),
    ("text/vtt", &["vtt"]),
    ("text/x-python", &["py"]),
    ("text/x-sgml", &["sgm", "sgml"]),
    ("text/x-vcard", &["vcf"]),
    ("text/xml", &["xml"]),
    ("video/mp4", &["mp4"]),
    ("video/mpeg", &["m1v", "mpa", "mpe", "mpeg", "mpg"]),
    ("video/quicktime", &["mov", "qt"]),
    ("video/webm", &["webm"]),
    ("video/x-msvideo", &["avi"]),
];

/// The media type that a file's name suggests.
pub(crate) fn guessed(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    TYPES
        .iter()
        .find(|(_, extensions)| extensions.contains(&extension.as_str()))
        .map(|(media_type, _)| *media_type)
}
