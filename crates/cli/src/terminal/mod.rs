//! What does a person see, and the shell? Bars and lines on stderr, results on stdout, and how it
//! ended.

pub mod advice;
pub mod bar;
pub mod draw;
pub mod failure;
pub mod folder_report;
pub mod interrupt;
pub mod output;
