//! What does the user type?
fn main() {}
