//! The environment: an HTTP server around a world
fn main() {}
