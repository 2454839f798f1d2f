//! How does a person see it? Tables and event logs.
