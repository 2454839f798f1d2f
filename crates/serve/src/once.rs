//! What takes long is computed when somebody first asks, once, and kept for as long as its vectors
//! are shown.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::api::{in_turn, inside};
use crate::error::Refusal;
use crate::site::{Contents, Site};

/// What `cell` holds, made by `make` where it is empty: by a task that goes on when who asked first
/// goes away. Those who ask meanwhile wait, without a thread, and one thing is made at a time.
pub(crate) async fn once<'a, T: Send + Sync + 'static>(
    site: &Arc<Site>,
    now: &'a Arc<Contents>,
    cell: impl Fn(&Contents) -> &OnceCell<T> + Copy + Send + Sync + 'static,
    make: impl Fn(&Contents) -> Result<T, Refusal> + Send + Sync + 'static,
) -> Result<&'a T, Refusal> {
    if cell(now).get().is_none() {
        let (asked, site) = (now.clone(), site.clone());
        let making = tokio::spawn(async move {
            let make_it = async || {
                let shown = asked.clone();
                in_turn(&site.computing, move || make(&shown)).await?
            };
            cell(&asked).get_or_try_init(make_it).await.map(drop)
        });
        making.await.map_err(inside)??;
    }
    cell(now).get().ok_or_else(|| Refusal::failed("it was not computed"))
}
