//! Run tasks, grade trials, look at results
fn main() {}
