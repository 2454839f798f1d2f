//! What the curriculum chose: the surest, the middling and the hardest neighbourhoods of each
//! round, as pictures.

use anchorhood_data::Split;
use anchorhood_train::discovery::Neighbourhoods;
use maud::{Markup, html};

use crate::sprite::Sprite;
use crate::{ReportError, RoundNeighbourhoods};

/// Neighbourhoods of a kind.
const SHOWN: usize = 10;
/// Neighbours shown of each.
const MOST_NEIGHBOURS: usize = 5;

/// Which neighbourhoods of a round to look at, under titles.
fn chosen(found: &Neighbourhoods) -> [(&'static str, Vec<u32>); 3] {
    let order = found.by_entropy();
    let n = order.len();
    let shown = SHOWN.min(n);
    let from = |first: usize| order[first..first + shown].to_vec();
    [
        ("Surest: lowest entropy", from(0)),
        ("In the middle", from((n - shown) / 2)),
        ("Hardest: highest entropy", from(n - shown)),
    ]
}

fn shown_neighbours(found: &Neighbourhoods, picture: u32) -> &[u32] {
    let all = found.neighbours_of(picture as usize);
    &all[..all.len().min(MOST_NEIGHBOURS)]
}

/// The sheet with all pictures of all rounds' galleries.
pub(crate) fn sprite(rounds: &[RoundNeighbourhoods], train: &Split) -> Result<Sprite, ReportError> {
    let mut pictures = vec![];
    for RoundNeighbourhoods { found, .. } in rounds {
        for picture in chosen(found).into_iter().flat_map(|(_, pictures)| pictures) {
            pictures.push(picture);
            pictures.extend_from_slice(shown_neighbours(found, picture));
        }
    }
    Sprite::of(&train.pictures, &pictures, 64)
}

/// The gallery of one round.
pub(crate) fn gallery(found: &Neighbourhoods, train: &Split, sprite: &Sprite) -> Markup {
    html! {
        @for (title, pictures) in chosen(found) {
            h3 { (title) }
            div.hoods {
                @for picture in pictures { (hood(found, train, sprite, picture)) }
            }
        }
    }
}

fn hood(found: &Neighbourhoods, train: &Split, sprite: &Sprite, picture: u32) -> Markup {
    let entropy = found.entropy()[picture as usize];
    let anchor = match found.anchors()[picture as usize] {
        true => "anchor",
        false => "not an anchor in this round",
    };
    let title = format!("{}: entropy {entropy:.3}, {anchor}", name(train, picture));
    html! {
        div.hood {
            (sprite.tile(picture, "anchor", &title))
            @for neighbour in shown_neighbours(found, picture) {
                @let title = format!("{}, its neighbour", name(train, *neighbour));
                (sprite.tile(*neighbour, judged(train, picture, *neighbour), &title))
            }
        }
    }
}

/// Whether a neighbour is of the picture's class, where there are classes: its frame.
pub(crate) fn judged(train: &Split, picture: u32, neighbour: u32) -> &'static str {
    match &train.labels {
        None => "",
        Some(l) if l.get(picture as usize) == l.get(neighbour as usize) => "right",
        Some(_) => "wrong",
    }
}

/// A picture in words: class and file, or its number.
pub(crate) fn name(train: &Split, picture: u32) -> String {
    let i = picture as usize;
    let class = train.labels.as_ref().map(|l| l.classes()[l.get(i) as usize].clone());
    let file = match train.names.get(i) {
        Some(name) => name.clone(),
        None => format!("picture {i}"),
    };
    class.into_iter().chain([file]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pictures_are_shown_in_every_row() {
        let (anchors, entropy) = (vec![true, false, false], vec![0.5, 0.1, 0.9]);
        let found = Neighbourhoods::from_parts(1, vec![1, 0, 0], anchors, entropy).unwrap();
        let rows = chosen(&found).map(|(_, pictures)| pictures);
        assert_eq!(rows, [[1, 0, 2], [1, 0, 2], [1, 0, 2]]);
        let entropy = (0..100).map(|i| i as f32).collect();
        let many = Neighbourhoods::from_parts(0, vec![], vec![false; 100], entropy).unwrap();
        let rows = chosen(&many).map(|(_, pictures)| pictures[0]);
        assert_eq!(rows, [0, 45, 90]);
    }
}
