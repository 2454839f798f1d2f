//! Settings.

use anchorhood_train::{Preset, RunConfig};

use crate::{Target, repair};

pub const TARGET: Target = Target {
    name: "config",
    read,
    repair: repair::nothing,
    seeds,
};

/// What can be used is written and read back the same.
fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let base = Preset::Quick.config("shapes");
    let read = RunConfig::from_toml(&text, "a file");
    for config in [read, base.overlaid(&text, "a file")].into_iter().flatten() {
        if config.check().is_ok() {
            let _ = base.differences(&config);
            let written = config.to_toml();
            let again = RunConfig::from_toml(&written, "a file");
            assert_eq!(again.expect("what was written is read"), config);
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let part = "seed = 7\n[training]\nepochs = 3\nrate = 0.03\n[network]\nwidth = 16\n";
    let presets = Preset::ALL
        .into_iter()
        .map(|p| p.config("shapes").to_toml());
    let wide = "seed = 18446744073709551615\n[discovery]\nneighbours = 9223372036854775808\n";
    let all = presets.chain([part.into(), wide.into()]);
    all.map(String::into_bytes).collect()
}
