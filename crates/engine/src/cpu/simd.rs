//! Which vector instructions to use, chosen at run time.

use pulp::Arch;

use crate::{Error, Result};

/// Defines a function of plain loops that is compiled once for each level of vector instructions,
/// and takes the level to run at as its first argument. Borrowed arguments are written with the
/// lifetime 'a.
///
/// A closure given to `Arch::dispatch` would do the same if it were always inlined; measured, it is
/// not.
macro_rules! vectorised {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<'a>($($arg:ident: $type:ty),* $(,)?) $body:block
    ) => {
        $(#[$meta])*
        #[allow(unused_mut)]
        $vis fn $name<'a>(arch: pulp::Arch, $($arg: $type),*) {
            struct Call<'a> { $($arg: $type),* }
            impl<'a> pulp::WithSimd for Call<'a> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    let Call { $(mut $arg),* } = self;
                    $body
                }
            }
            arch.dispatch(Call { $($arg),* });
        }
    };
}
pub(crate) use vectorised;

/// A level of vector instructions this program was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdLevel {
    /// AVX-512: 16 lanes, 32 registers.
    Avx512,
    /// AVX2 with fused multiply-add: 8 lanes, 16 registers.
    Avx2,
    /// NEON: 4 lanes, 32 registers.
    Neon,
    /// No vector instructions beyond what the compiler's baseline has.
    Plain,
}

impl SimdLevel {
    /// The environment variable that names the level to use, by [`SimdLevel::name`].
    pub const VARIABLE: &'static str = "ANCHORHOOD_SIMD";

    /// The best this machine has.
    pub fn detect() -> Self {
        SimdLevel::of(Arch::new())
    }

    /// The level that [`SimdLevel::VARIABLE`] names, or else the best.
    ///
    /// # Errors
    /// Where it names none that this machine has.
    pub fn wanted() -> Result<Self> {
        let name = std::env::var_os(SimdLevel::VARIABLE).filter(|name| !name.is_empty());
        match name {
            Some(name) => SimdLevel::named(&name.to_string_lossy()),
            None => Ok(SimdLevel::detect()),
        }
    }

    /// The level of this name.
    ///
    /// # Errors
    /// Where this machine has none.
    fn named(name: &str) -> Result<Self> {
        let levels = SimdLevel::available();
        let found = levels.iter().find(|level| level.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
            let (variable, known) = (SimdLevel::VARIABLE, names.join(", "));
            Error::Device(format!(
                "{variable}={name}: this machine has no such vector instructions; it has {known}"
            ))
        })
    }

    /// What [`SimdLevel::VARIABLE`] calls it.
    pub fn name(self) -> &'static str {
        match self {
            SimdLevel::Avx512 => "avx512",
            SimdLevel::Avx2 => "avx2",
            SimdLevel::Neon => "neon",
            SimdLevel::Plain => "plain",
        }
    }

    /// All this machine has, best first.
    pub fn available() -> Vec<Self> {
        use SimdLevel::{Avx2, Avx512, Neon, Plain};
        let all = [Avx512, Avx2, Neon, Plain];
        all.into_iter().filter(|l| l.arch().is_some()).collect()
    }

    fn of(arch: Arch) -> Self {
        match arch {
            #[cfg(target_arch = "x86_64")]
            Arch::V4(_) => SimdLevel::Avx512,
            #[cfg(target_arch = "x86_64")]
            Arch::V3(_) => SimdLevel::Avx2,
            #[cfg(target_arch = "aarch64")]
            Arch::Neon(_) => SimdLevel::Neon,
            _ => SimdLevel::Plain,
        }
    }

    /// The proof, which only detection can give, that the machine has this level.
    pub(crate) fn arch(self) -> Option<Arch> {
        match self {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => pulp::x86::V4::try_new().map(Arch::V4),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => pulp::x86::V3::try_new().map(Arch::V3),
            #[cfg(target_arch = "aarch64")]
            SimdLevel::Neon => pulp::aarch64::Neon::try_new().map(Arch::Neon),
            SimdLevel::Plain => Some(Arch::Scalar),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }
}

impl std::fmt::Display for SimdLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            SimdLevel::Avx512 => "AVX-512",
            SimdLevel::Avx2 => "AVX2+FMA",
            SimdLevel::Neon => "NEON",
            SimdLevel::Plain => "plain",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::SimdLevel;

    #[test]
    fn levels_are_found_by_name() {
        for level in SimdLevel::available() {
            assert_eq!(SimdLevel::named(level.name()).unwrap(), level);
        }
        let error = SimdLevel::named("avx3").unwrap_err().to_string();
        assert!(error.starts_with("ANCHORHOOD_SIMD=avx3: "), "{error}");
        assert!(error.ends_with("plain"), "{error}");
    }
}
