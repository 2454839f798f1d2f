//! Neighbourhoods of a bank that lies in parts on several processes, looked for approximately.

use anchorhood_discover::{MemoryBank, Neighbourhoods};
use anchorhood_engine::{Communicator, Device};
use anchorhood_random::{Draws, Stream};
use anchorhood_ranks::ThreadRank;

#[test]
fn several_processes_find_what_one_finds() {
    let (n, dim, k) = (6001, 12, 4);
    let mut rows = vec![0.0; n * dim];
    Draws::new(1, Stream::Test, 0, 0).fill_symmetric(&mut rows, 0.4);
    for (i, row) in rows.chunks_exact_mut(dim).enumerate() {
        row[(i * 5) % dim] += 1.0;
        let length = row.iter().map(|v| v * v).sum::<f32>().sqrt();
        row.iter_mut().for_each(|v| *v /= length);
    }
    let of = |ranks: usize| {
        let mut all = ThreadRank::run(ranks, |rank| {
            let device = Device::cpu(1).among(Communicator::of(rank));
            let bank = MemoryBank::from_values(&device, &rows, dim).unwrap();
            let found =
                Neighbourhoods::discover_approximately(&device, &bank, k, 0.1, 0.5, &|_| {});
            found.unwrap()
        });
        assert!(all.iter().all(|found| *found == all[0]));
        all.swap_remove(0)
    };
    let whole = of(1);
    assert!(whole.recall().unwrap() > 0.7, "{:?}", whole.recall());
    for ranks in [2, 3] {
        let found = of(ranks);
        assert_eq!(found.neighbours(), whole.neighbours(), "{ranks} ranks");
        assert_eq!(found.recall(), whole.recall());
        // The weights of the sample are each part's own.
        let off = found
            .entropy()
            .iter()
            .zip(whole.entropy())
            .map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 0.1, "{ranks} ranks");
    }
}
