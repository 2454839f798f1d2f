//! What is true of each published data set, wherever it lies: counts, classes, statistics, the
//! paper's sizes and batches.

use super::archives::{self, Archive};

/// The official facts of a data set.
#[derive(Debug)]
pub struct SetFacts {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name among people.
    pub title: &'static str,
    /// The environment variable that may say where it lies.
    pub variable: &'static str,
    /// Where its authors publish it.
    pub page: &'static str,
    /// How many pictures to train on.
    pub train: usize,
    /// How many to test on.
    pub test: usize,
    /// How many classes.
    pub classes: usize,
    /// Mean of each channel, of values in [0, 1].
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
    /// Side of the pictures that the network sees.
    pub size: usize,
    /// Pictures in a training batch in the paper.
    pub batch: usize,
    /// The folder that fetched files are put in, below that of all sets; empty where an archive
    /// brings its own.
    pub folder: &'static str,
    /// What is downloaded; nothing where that needs an account.
    pub archives: &'static [Archive],
}

const IMAGENET_MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const IMAGENET_STD: [f32; 3] = [0.229, 0.224, 0.225];

/// CIFAR-10.
pub static CIFAR10: SetFacts = SetFacts {
    name: "cifar10",
    title: "CIFAR-10",
    variable: "ANCHORHOOD_CIFAR10",
    page: "https://www.cs.toronto.edu/~kriz/cifar.html",
    train: 50_000,
    test: 10_000,
    classes: 10,
    mean: [0.4914, 0.4822, 0.4465],
    std: [0.2023, 0.1994, 0.2010],
    size: 32,
    batch: 128,
    folder: "",
    archives: &archives::CIFAR10,
};

/// CIFAR-100, with its own statistics.
pub static CIFAR100: SetFacts = SetFacts {
    name: "cifar100",
    title: "CIFAR-100",
    variable: "ANCHORHOOD_CIFAR100",
    page: "https://www.cs.toronto.edu/~kriz/cifar.html",
    train: 50_000,
    test: 10_000,
    classes: 100,
    mean: [0.5071, 0.4865, 0.4409],
    std: [0.2673, 0.2564, 0.2762],
    size: 32,
    batch: 128,
    folder: "",
    archives: &archives::CIFAR100,
};

/// Street View House Numbers, cropped digits. Its statistics are those of the training pictures, as
/// commonly used.
pub static SVHN: SetFacts = SetFacts {
    name: "svhn",
    title: "SVHN (cropped digits)",
    variable: "ANCHORHOOD_SVHN",
    page: "http://ufldl.stanford.edu/housenumbers/",
    train: 73_257,
    test: 26_032,
    classes: 10,
    mean: [0.4377, 0.4438, 0.4728],
    std: [0.1980, 0.2010, 0.1970],
    size: 32,
    batch: 128,
    folder: "svhn",
    archives: &archives::SVHN,
};

/// ImageNet, ILSVRC2012. Tested on its validation pictures, as everybody does.
pub static IMAGENET: SetFacts = SetFacts {
    name: "imagenet",
    title: "ImageNet (ILSVRC2012)",
    variable: "ANCHORHOOD_IMAGENET",
    page: "https://image-net.org/challenges/LSVRC/2012/",
    train: 1_281_167,
    test: 50_000,
    classes: 1000,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 256,
    folder: "imagenet",
    archives: &[],
};

/// CUB-200-2011: birds. ImageNet's statistics, as is usual for fine-grained sets.
pub static CUB200: SetFacts = SetFacts {
    name: "cub200",
    title: "CUB-200-2011",
    variable: "ANCHORHOOD_CUB200",
    page: "https://www.vision.caltech.edu/datasets/cub_200_2011/",
    train: 5_994,
    test: 5_794,
    classes: 200,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 128,
    folder: "",
    archives: &archives::CUB200,
};

/// Stanford Dogs. ImageNet's statistics: its pictures are ImageNet's.
pub static DOGS: SetFacts = SetFacts {
    name: "dogs",
    title: "Stanford Dogs",
    variable: "ANCHORHOOD_DOGS",
    page: "http://vision.stanford.edu/aditya86/ImageNetDogs/",
    train: 12_000,
    test: 8_580,
    classes: 120,
    mean: IMAGENET_MEAN,
    std: IMAGENET_STD,
    size: 224,
    batch: 128,
    folder: "dogs",
    archives: &archives::DOGS,
};

/// All published sets that are known by name.
pub static SETS: [&SetFacts; 6] = [&CIFAR10, &CIFAR100, &SVHN, &IMAGENET, &CUB200, &DOGS];

/// The facts of the set that `spec` names, alone or as `NAME:PATH`.
pub fn facts_of(spec: &str) -> Option<&'static SetFacts> {
    let name = spec.split_once(':').map_or(spec, |(name, _)| name);
    SETS.into_iter().find(|facts| facts.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_found_by_name_and_by_name_with_a_path() {
        assert_eq!(facts_of("svhn").unwrap().train, 73_257);
        assert_eq!(facts_of("cub200:some/where").unwrap().size, 224);
        assert!(facts_of("shapes").is_none() && facts_of("some/where").is_none());
    }

    /// The paper: batches of 128, ImageNet's of 256.
    #[test]
    fn batches_are_the_papers() {
        let others = SETS.iter().filter(|f| f.name != "imagenet");
        assert!(others.clone().count() == 5 && others.into_iter().all(|f| f.batch == 128));
        assert_eq!(IMAGENET.batch, 256);
    }
}
