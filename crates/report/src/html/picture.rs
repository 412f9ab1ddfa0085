//! Which pictures a page may hold.

/// The kinds of picture that browsers show and that cannot do anything else. SVG can.
const KINDS: [&str; 4] = ["png", "jpeg", "gif", "webp"];

/// Whether `uri` is an embedded picture of a known kind and nothing more.
pub(super) fn is_embedded(uri: &str) -> bool {
    let Some((kind, data)) = uri
        .strip_prefix("data:image/")
        .and_then(|rest| rest.split_once(";base64,"))
    else {
        return false;
    };
    KINDS.contains(&kind)
        && data
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_embedded_pictures_of_known_kinds_pass() {
        assert!(is_embedded("data:image/png;base64,iVBORw0KGgo="));
        for uri in [
            "https://example.org/x.png",
            "data:image/svg+xml;base64,AAAA",
            "data:text/html;base64,AAAA",
            "data:image/png;base64,AA\"onerror=",
            "data:image/png,AAAA",
            "javascript:alert(1)",
        ] {
            assert!(!is_embedded(uri), "{uri}");
        }
    }
}
