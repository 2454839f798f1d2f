//! Tests that drive a browser.

mod keyboard;
mod page;
