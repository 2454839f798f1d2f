//! Which vector instructions to use, chosen at run time.

use pulp::Arch;

/// Defines a function of plain loops that is compiled once for each level of vector instructions, and takes the level to
/// run at as its first argument. Borrowed arguments are written with the lifetime 'a.
///
/// A closure given to `Arch::dispatch` would do the same if it were always inlined; measured, it is not.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident<'a>($($arg:ident: $type:ty),* $(,)?) $body:block) => {
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
pub(super) use vectorised;

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
    /// The best this machine has.
    pub fn detect() -> Self {
        SimdLevel::of(Arch::new())
    }

    /// What `ANCHORHOOD_SIMD` calls it.
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
