//! What takes longer than all others: for `.ci/run`.

use crate::common::{CPU_TOLERANCE, cpus};
use crate::fused::{MANY_ROWS, over_rows};

#[test]
#[ignore = "long: plain loops over half a million values and more"]
fn batch_norms_over_many_rows_on_a_cpu() {
    cpus().iter().for_each(|cpu| over_rows(cpu, CPU_TOLERANCE, &MANY_ROWS[1..]));
}
