//! Neighbourhoods of a bank that lies in parts on several processes, looked for approximately.

use anchorhood_distributed::ThreadRank;
use anchorhood_engine::vectors::to_unit_length;
use anchorhood_engine::{Communicator, Device};
use anchorhood_storage::random::{Draws, Stream};
use anchorhood_train::discovery::{DiscoverBy, MemoryBank, Neighbourhoods};

/// What all processes found of their own pictures, as one that had them all would.
fn whole_of(parts: &[Neighbourhoods]) -> (Neighbourhoods, Option<f64>) {
    let mut first = 0;
    for part in parts {
        assert_eq!((part.first(), part.pictures()), (first, 6001));
        assert_eq!((part.k(), part.recall()), (parts[0].k(), parts[0].recall()));
        first += part.len();
    }
    let neighbours = parts.iter().flat_map(|p| p.neighbours().to_vec());
    let anchors = parts.iter().flat_map(|p| p.anchors().to_vec());
    let entropy = parts.iter().flat_map(|p| p.entropy().to_vec());
    let (neighbours, anchors, entropy) =
        (neighbours.collect(), anchors.collect(), entropy.collect());
    let whole = Neighbourhoods::from_parts(parts[0].k(), neighbours, anchors, entropy);
    (whole.unwrap(), parts[0].recall())
}

#[test]
fn several_processes_find_what_one_finds() {
    let (n, dim, k) = (6001, 12, 4);
    let mut rows = vec![0.0; n * dim];
    Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut rows, 0.4);
    rows.chunks_exact_mut(dim).enumerate().for_each(|(i, row)| row[(i * 5) % dim] += 1.0);
    to_unit_length(&mut rows, dim);
    let of = |ranks: usize| {
        let all = ThreadRank::run(ranks, |rank| {
            let device = Device::cpu(1).among(Communicator::of(rank));
            let bank = MemoryBank::from_values(&device, &rows, dim).unwrap();
            let by = DiscoverBy::Approximate;
            Neighbourhoods::discover(&device, &bank, by, k, 0.1, 0.5, &|_| {}).unwrap()
        });
        whole_of(&all)
    };
    let (whole, recall) = of(1);
    assert!(recall.unwrap() > 0.7, "{recall:?}");
    for ranks in [2, 3] {
        let (found, told) = of(ranks);
        assert_eq!(found.neighbours(), whole.neighbours(), "{ranks} ranks");
        assert_eq!(told, recall);
        assert_eq!(found.anchor_count(), whole.anchor_count());
        // The weights of the sample are each part's own.
        let off = found.entropy().iter().zip(whole.entropy()).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 0.1, "{ranks} ranks");
    }
}
