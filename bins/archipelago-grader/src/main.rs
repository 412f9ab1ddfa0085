//! Grade one trajectory, with the flags of the reference
fn main() {}
