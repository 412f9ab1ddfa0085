//! What tests need of the machine, beyond Rust.

/// Whether a test can work: `found` says whether `what` is there.
///
/// Where it is not, that is said aloud on stderr, so that the test can be left out; with
/// `ARCHIPELAGO_REQUIRE=all` in the environment nothing may be left out.
///
/// # Panics
/// When `what` is absent and nothing may be left out.
#[expect(
    clippy::print_stderr,
    reason = "a test that is left out has to be seen by people"
)]
#[must_use]
pub fn available(what: &str, found: bool) -> bool {
    let required = std::env::var_os("ARCHIPELAGO_REQUIRE").is_some_and(|value| value == "all");
    assert!(found || !required, "{what} is required and not there");
    if !found {
        eprintln!("SKIPPED: {what} is not there");
    }
    found
}
