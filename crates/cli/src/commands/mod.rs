//! What does each command do? A module each, named as it is typed; what a user says, and what is
//! printed. The work itself is the library's.

pub mod attention;
pub mod bench;
pub mod classify;
pub mod cluster;
pub mod compare;
pub mod completions;
pub mod data;
pub mod duplicates;
pub mod embed;
pub mod evaluate;
pub mod export;
pub mod index;
pub mod indexed;
pub mod info;
pub mod listing;
pub mod model;
pub mod neighbours;
pub mod outliers;
pub mod report;
pub mod reproduce;
pub mod select;
pub mod serve;
pub mod train;
