//! Tests from outside, together in one program, since each program is linked anew.

mod bad_input;
#[path = "../clients/mod.rs"]
mod clients;
mod common;
mod compare;
mod curate;
mod damage;
mod data;
mod data_fetch;
mod elsewhere;
mod embed;
mod export;
mod file_server;
mod folders;
mod from;
mod hostile;
mod methods;
mod model;
mod moving;
mod onnx;
mod protocols;
mod ranks;
mod report;
mod reproduce;
mod resume;
mod search;
mod serve;
mod supervised;
mod training;
mod without_training;
