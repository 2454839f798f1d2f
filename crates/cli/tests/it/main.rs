//! Tests from outside, together in one program, since each program is linked anew.

#[path = "../clients/mod.rs"]
mod clients;
mod common;
mod compare;
mod curate;
mod data;
mod data_fetch;
mod elsewhere;
mod embed;
mod export;
mod file_server;
mod folders;
mod from;
mod hostile;
mod long;
mod methods;
mod model;
mod moving;
mod protocols;
mod ranks;
mod reference;
mod refusals;
mod report;
mod reproduce;
mod resume;
mod search;
mod serve;
mod training;
mod without_training;
