//! The MCP file server for worlds
fn main() {}
