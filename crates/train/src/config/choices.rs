//! Settings with names as values. A name is written once: as text, in a file and in the help it is
//! the same.

use crate::discovery::{Curriculum, DiscoverBy};
use crate::methods::{METHODS, MethodSpec, ViewStatistics};
use anchorhood_data::{CropsFrom, LabelChoice};
use anchorhood_models::Colours;
use serde::de::Error;
use serde::{Deserializer, Serializer};

use super::value::{Kind, Value, by_text};

/// An enum, its values by their names.
macro_rules! names {
    ($choice:ty { $($variant:ident = $name:literal,)+ }) => {
        impl Value for $choice {
            const KIND: Kind = Kind::Choice(&[$($name),+]);
            by_text!();

            fn text(&self) -> String {
                match self {
                    $(<$choice>::$variant => $name.into(),)+
                }
            }

            fn parse(name: &str) -> Result<Self, String> {
                match name {
                    $($name => Ok(<$choice>::$variant),)+
                    _ => Err(format!("{name:?} is none of {}", [$($name),+].join(", "))),
                }
            }
        }
    };
}

impl Value for &'static MethodSpec {
    const KIND: Kind = Kind::Method;

    fn text(&self) -> String {
        self.name.into()
    }

    fn parse(name: &str) -> Result<Self, String> {
        METHODS.find(name).ok_or_else(|| format!("{name:?} is none of {}", METHODS.names()))
    }

    fn write<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }

    fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name: String = serde::Deserialize::deserialize(from)?;
        let unlike = || D::Error::custom("a method's name is not so long");
        MethodSpec::in_file(&name).ok_or_else(unlike)
    }
}

names! { ViewStatistics { Each = "each", All = "all", } }
names! { CropsFrom { Picture = "picture", Square = "square", } }
names! { Curriculum { Linear = "linear", OneOff = "one-off", } }
names! { DiscoverBy { Auto = "auto", Exact = "exact", Approximate = "approximate", } }
names! { Colours { Rgb = "rgb", Lightness = "lightness", Split = "split", } }

/// An enum of names.
macro_rules! choices {
    ($(
        $(#[$about:meta])*
        $choice:ident { $($(#[$each:meta])* $variant:ident = $name:literal,)+ }
    )+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $choice {
            $($(#[$each])* $variant,)+
        }

        impl $choice {
            /// What can be typed.
            pub const NAMES: &[&str] = &[$($name),+];

            /// What the user types.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                Value::parse(name)
            }
        }

        names! { $choice { $($variant = $name,)+ } }
    )+};
}

choices! {
    /// Whether sub-folders of a folder are classes.
    LabelsChoice {
        /// Where they look like it.
        Auto = "auto",
        /// They are.
        Folders = "folders",
        /// They are not.
        None = "none",
    }

    /// How weights move.
    OptimiserChoice {
        /// Stochastic gradient descent with momentum.
        Sgd = "sgd",
        /// SGD with a rate for each tensor, after its own length.
        Lars = "lars",
        /// Adam with decoupled weight decay.
        AdamW = "adamw",
    }

    /// How the learning rate falls.
    ScheduleChoice {
        /// At milestones.
        Steps = "steps",
        /// As a cosine, to zero.
        Cosine = "cosine",
    }

    /// Which features of the training pictures.
    FeatureSource {
        /// The memory bank as training left it.
        Memory = "memory",
        /// Those the network gives now, without augmentation.
        Recomputed = "recomputed",
    }

    /// Which first layers a network has.
    StemChoice {
        /// Those published for the size of the pictures.
        Auto = "auto",
        /// Those that take little time at that size.
        Fast = "fast",
    }

    /// What numbers a GPU computes with; the CPU's are f32.
    #[derive(Default)]
    PrecisionChoice {
        /// Activations in bf16, sums and weights in f32.
        #[default]
        Bf16 = "bf16",
        /// f32, with convolutions rounded to tf32.
        Tf32 = "tf32",
        /// f32.
        F32 = "f32",
    }
}

impl From<LabelsChoice> for LabelChoice {
    fn from(choice: LabelsChoice) -> Self {
        match choice {
            LabelsChoice::Auto => LabelChoice::Auto,
            LabelsChoice::Folders => LabelChoice::Folders,
            LabelsChoice::None => LabelChoice::None,
        }
    }
}

impl From<PrecisionChoice> for anchorhood_engine::Precision {
    fn from(choice: PrecisionChoice) -> Self {
        match choice {
            PrecisionChoice::Bf16 => anchorhood_engine::Precision::Bf16,
            PrecisionChoice::Tf32 => anchorhood_engine::Precision::Tf32,
            PrecisionChoice::F32 => anchorhood_engine::Precision::F32,
        }
    }
}

/// Which device: `auto`, `cpu`, `cuda`, `cuda:N`, or several GPUs, `cuda:0,1` or `cuda:all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU that works, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU by its number.
    Cuda(usize),
    /// Several of them, a process each.
    Several(GpuSet),
    /// All that there are, a process each.
    AllGpus,
}

/// Two or more GPUs by their numbers, below 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuSet(u64);

impl GpuSet {
    /// Of numbers with commas between them: one or more, none twice.
    fn parse(list: &str) -> Option<u64> {
        list.split(',').try_fold(0, |set: u64, number| {
            let number: u32 = number.parse().ok()?;
            let bit = 1_u64.checked_shl(number)?;
            (set & bit == 0).then_some(set | bit)
        })
    }

    /// Their numbers, in order: one for each process of the machine.
    pub fn numbers(self) -> Vec<usize> {
        let there = |n: &usize| self.0 >> n & 1 == 1;
        (0..u64::BITS as usize).filter(there).collect()
    }
}

impl std::fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(0) => f.write_str("cuda"),
            DeviceChoice::Cuda(n) => write!(f, "cuda:{n}"),
            DeviceChoice::Several(gpus) => {
                let numbers: Vec<_> = gpus.numbers().iter().map(usize::to_string).collect();
                write!(f, "cuda:{}", numbers.join(","))
            }
            DeviceChoice::AllGpus => f.write_str("cuda:all"),
        }
    }
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let numbers = |list: &str| match (list.parse(), GpuSet::parse(list)) {
            (Ok(number), _) => Some(DeviceChoice::Cuda(number)),
            (Err(_), gpus) => gpus.map(|gpus| DeviceChoice::Several(GpuSet(gpus))),
        };
        let choice = match name {
            "auto" => Some(DeviceChoice::Auto),
            "cpu" => Some(DeviceChoice::Cpu),
            "cuda" => Some(DeviceChoice::Cuda(0)),
            "cuda:all" => Some(DeviceChoice::AllGpus),
            _ => name.strip_prefix("cuda:").and_then(numbers),
        };
        choice.ok_or_else(|| {
            format!("{name:?} is none of auto, cpu, cuda, cuda:N, cuda:N,M,… (each once), cuda:all")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_written_as_they_are_read() {
        for name in ["auto", "cpu", "cuda", "cuda:3", "cuda:0,1", "cuda:2,5,63", "cuda:all"] {
            let choice: DeviceChoice = name.parse().unwrap();
            assert_eq!(choice.to_string(), name);
        }
        let unordered: DeviceChoice = "cuda:1,0".parse().unwrap();
        assert_eq!(unordered.to_string(), "cuda:0,1");
        let DeviceChoice::Several(gpus) = unordered else {
            panic!("{unordered:?}");
        };
        assert_eq!(gpus.numbers(), [0, 1]);
        for name in ["gpu", "cuda:", "cuda:x", "cuda:0,", "cuda:0,0", "cuda:0,64", "cuda:-1"] {
            let said = name.parse::<DeviceChoice>().unwrap_err();
            assert!(said.contains("cuda:all"), "{said}");
        }
    }
}
