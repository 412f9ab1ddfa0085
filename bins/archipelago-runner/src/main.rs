//! Run one agent against a gateway, with the flags of the reference
fn main() {}
