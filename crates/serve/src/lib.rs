//! How does one walk through pictures in a browser?
//!
//! A [`Collection`] is what is shown: a run or an index, and the model behind it. Its [`Catalog`]
//! holds the pictures with their vectors. A [`Server`] shows them on a page of the own machine, and
//! answers the same questions as JSON under `/api`, described at `/api/openapi.json`. Pictures that
//! are not on the shelf are sent through a [`InferenceQueue`] to the thread that has the model on
//! its device.
//!
//! What strangers could do is limited: the page is shown to this machine alone unless a token is
//! set, which is too long to be guessed, and to no other site's pages; uploads have a greatest
//! size, each and together, and a longest time; only pictures on the shelf are ever read; requests
//! that do not come to their end, and answers that are not read, lose their connection; and no
//! request can end the server. SECURITY.md says what is promised.

#![forbid(unsafe_code)]
#![allow(unused_qualifications, reason = "`utoipa::path` writes some")]

mod api;
mod asked;
mod attention;
mod budget;
mod catalog;
mod clusters;
mod collection;
mod connections;
mod cross_site;
mod duplicates;
mod error;
mod filter;
#[cfg(test)]
mod fixtures;
mod growing;
mod guard;
mod inference_queue;
mod kept;
mod live;
mod model;
mod neighbourhoods;
mod no_links;
mod once;
mod open_files;
mod openapi;
mod originals;
mod outliers;
mod paced;
mod run;
mod sample;
mod server;
mod session;
mod site;
mod upload;

pub use catalog::Catalog;
pub use collection::{Collection, Hearers};
pub use error::ServeError;
pub use growing::ServedFolders;
pub use inference_queue::{Asker, InferenceQueue, inference_queue};
pub use server::{ServeOptions, Server, Stop};
pub use session::draw_token;
pub use site::Renewer;
