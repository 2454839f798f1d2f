//! The first thing a page shows: a few pictures, evenly taken, each beside what the model finds
//! most like it, large and from their own files.

use anchorhood_data::Split;
use anchorhood_train::evaluation::Rows;
use maud::{Markup, html};

use crate::ReportError;
use crate::gallery::{judged, name};
use crate::sprite::Sprite;

/// Pictures that are shown with their neighbours.
const SHOWN: usize = 6;
/// Neighbours of each.
const NEIGHBOURS: usize = 5;
/// Pixels a side, at most.
const SIDE: usize = 160;

/// A picture and those most like it.
struct Row {
    picture: u32,
    nearest: Vec<u32>,
}

/// The section, of a memory of the same pictures.
pub(crate) fn lead(embedding: &Rows, train: &Split) -> Result<Markup, ReportError> {
    let rows = rows(embedding);
    let all = rows.iter().flat_map(|r| std::iter::once(&r.picture).chain(&r.nearest));
    let sprite = Sprite::of_files(train, &all.copied().collect::<Vec<u32>>(), SIDE)?;
    let crisp = if sprite.side <= 48 { ";image-rendering:pixelated" } else { "" };
    Ok(html! {
        h2 { "What the model finds alike" }
        p.small.soft {
            "Pictures evenly taken from all, not chosen; right of each its nearest."
            @if train.labels.is_some() {
                " Frames: green, of its class; red, of another \
                 (labels judge here, they never train)."
            }
        }
        (sprite.style(".alike .big", crisp))
        div.lead {
            @for row in &rows { (shown(row, train, &sprite)) }
        }
    })
}

fn shown(row: &Row, train: &Split, sprite: &Sprite) -> Markup {
    let called = name(train, row.picture);
    let right = row.nearest.iter().filter(|n| judged(train, row.picture, **n) == "right");
    html! {
        figure.alike {
            (sprite.tile(row.picture, "big asked", &called))
            @for neighbour in &row.nearest {
                @let class = format!("big {}", judged(train, row.picture, *neighbour));
                (sprite.tile(*neighbour, &class, &name(train, *neighbour)))
            }
            figcaption {
                (called)
                @if train.labels.is_some() {
                    " · " (right.count()) " of " (row.nearest.len()) " of its class"
                }
            }
        }
    }
}

fn rows(embedding: &Rows) -> Vec<Row> {
    let n = embedding.len();
    let count = SHOWN.min(n);
    // The middle of each of so many equal parts.
    let pictures = (0..count).map(|i| (2 * i + 1) * n / (2 * count));
    pictures.map(|i| Row { picture: i as u32, nearest: nearest(embedding, i) }).collect()
}

fn nearest(embedding: &Rows, i: usize) -> Vec<u32> {
    let row = |i: usize| embedding.row(i);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let asked = row(i);
    let similarity = |j: usize| {
        let cosine = dot(asked, row(j)) / dot(row(j), row(j)).sqrt().max(1e-12);
        if cosine.is_finite() { cosine } else { -1.0 }
    };
    let others = (0..embedding.len()).filter(|j| *j != i);
    let mut others: Vec<(f32, u32)> = others.map(|j| (similarity(j), j as u32)).collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    others.into_iter().take(NEIGHBOURS).map(|(_, j)| j).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_never_the_picture_itself() {
        let angles = [0.0_f32, 0.1, 3.0, 0.2, 2.9, 1.5, 0.15];
        // Of different lengths: only directions count.
        let both = angles.iter().zip(1..);
        let values = both.flat_map(|(a, length)| [a.cos(), a.sin()].map(|v| v * length as f32));
        let embedding = Rows::new(values.collect(), 2);
        assert_eq!(nearest(&embedding, 0), [1, 6, 3, 5, 4]);
        let rows = rows(&embedding);
        assert_eq!(rows.len(), SHOWN);
        assert!(rows.iter().all(|r| !r.nearest.contains(&r.picture)));
        let few = Rows::new(vec![1.0, f32::NAN], 1);
        assert_eq!(super::rows(&few)[0].nearest, [1]);
        assert!(super::rows(&Rows::default()).is_empty());
    }
}
