//! Who is given what, so that all together are served best: the linear assignment problem, solved
//! exactly by shortest augmenting paths (the Hungarian method as Jonker and Volgenant have it), in
//! n³ steps.

/// For each row of an n × n matrix of costs the column it is given, each column once, so that the
/// sum of the costs is least.
pub fn assign(costs: &[f32], n: usize) -> Vec<usize> {
    // Rows and columns are counted from 1; column 0 is where the row that looks for one begins.
    let (mut of_row, mut of_column) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut row_of = vec![0; n + 1];
    let mut before = vec![0; n + 1];
    for row in 1..=n {
        row_of[0] = row;
        let (mut at, mut seen) = (0, vec![false; n + 1]);
        let mut least = vec![f64::INFINITY; n + 1];
        while row_of[at] != 0 {
            seen[at] = true;
            let (mut next, mut shortest) = (0, f64::INFINITY);
            for column in (1..=n).filter(|column| !seen[*column]) {
                let cost = f64::from(costs[(row_of[at] - 1) * n + column - 1]);
                let left = cost - of_row[row_of[at]] - of_column[column];
                if left < least[column] {
                    (least[column], before[column]) = (left, at);
                }
                if least[column] < shortest {
                    (shortest, next) = (least[column], column);
                }
            }
            for column in 0..=n {
                match seen[column] {
                    true => {
                        of_row[row_of[column]] += shortest;
                        of_column[column] -= shortest;
                    }
                    false => least[column] -= shortest,
                }
            }
            at = next;
        }
        while at != 0 {
            row_of[at] = row_of[before[at]];
            at = before[at];
        }
    }
    let mut given = vec![0; n];
    (1..=n).for_each(|column| given[row_of[column] - 1] = column - 1);
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_storage::random::{Draws, Stream};

    fn sum(costs: &[f32], n: usize, given: &[usize]) -> f64 {
        let cost = |(row, column): (usize, &usize)| f64::from(costs[row * n + column]);
        given.iter().enumerate().map(cost).sum()
    }

    /// Every way there is, tried.
    fn least(costs: &[f32], n: usize, given: &mut Vec<usize>) -> f64 {
        if given.len() == n {
            return sum(costs, n, given);
        }
        let mut best = f64::INFINITY;
        for column in 0..n {
            if !given.contains(&column) {
                given.push(column);
                best = best.min(least(costs, n, given));
                given.pop();
            }
        }
        best
    }

    #[test]
    fn no_other_way_is_cheaper() {
        for n in 0..7 {
            for item in 0..20 {
                let mut costs = vec![0.0; n * n];
                Draws::new(1, Stream::Test, 0, item).fill_symmetric(&mut costs, 1.0);
                if item % 2 == 0 {
                    costs.iter_mut().for_each(|c| *c = (2.0 * *c).round()); // ties
                }
                let given = assign(&costs, n);
                let mut columns = given.clone();
                columns.sort();
                assert_eq!(columns, (0..n).collect::<Vec<_>>());
                let (got, best) = (sum(&costs, n, &given), least(&costs, n, &mut vec![]));
                assert!((got - best).abs() < 1e-6, "{got}, at best {best}");
            }
        }
    }
}
