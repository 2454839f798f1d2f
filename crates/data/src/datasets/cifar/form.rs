//! Which files CIFAR-10 and CIFAR-100 consist of, in their binary and python forms.

use super::{CIFAR10, CIFAR100};
use crate::datasets::DatasetSpec;
use crate::statistics::Sums;

/// Sums of red, green and blue over all pixels of CIFAR-10 to train and to test on. They do not
/// depend on the pictures' order, in which copies differ.
const CIFAR10_SUMS: [[u64; 3]; 2] =
    [[6_415_714_204, 6_295_060_180, 5_829_907_619], [1_290_492_328, 1_266_775_083, 1_176_108_223]];

/// How a form stores its records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// So many label bytes, the last of which counts, then three planes of 1,024 bytes.
    Binary {
        /// Label bytes of a record.
        label_bytes: usize,
    },
    /// A pickled dictionary with `data` and a list of labels.
    Python {
        /// The list's key.
        labels: &'static str,
        /// The key of the class names in the names' file.
        names: &'static str,
    },
}

/// One of the four ways the two data sets are published.
pub(super) struct Form {
    /// The set, however it is written.
    pub set: &'static DatasetSpec,
    pub folder: &'static str,
    pub archive: &'static str,
    pub coding: Coding,
    pub train: &'static [&'static str],
    pub test: &'static str,
    /// The file that names the classes.
    pub names: &'static str,
    /// A folder with these files is taken for this form.
    pub marks: &'static [&'static str],
}

impl Form {
    /// Records in each file to train on, and in that to test on.
    pub fn records(&self) -> [usize; 2] {
        [self.set.train / self.train.len(), self.set.test]
    }

    /// Whether pictures that add up to this can be the published ones: where no sums are known to
    /// the last digit, by the published mean.
    pub fn can_be(&self, train: Sums, test: Sums) -> bool {
        if self.set.name == CIFAR10.name {
            return [train.sum, test.sum] == CIFAR10_SUMS;
        }
        let near = |(a, b): (&f32, f32)| (a - b).abs() < 1e-3;
        self.set.mean.iter().zip(train.mean_and_std().0).all(near)
    }

    /// Whether `file` is one of this form's.
    pub fn knows(&self, file: &str) -> bool {
        self.train.contains(&file) || file == self.test || file == self.names
    }
}

pub(super) static FORMS: [Form; 4] = [
    Form {
        set: &CIFAR10,
        folder: "cifar-10-batches-bin",
        archive: "cifar-10-binary.tar.gz",
        coding: Coding::Binary { label_bytes: 1 },
        train: &[
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
        ],
        test: "test_batch.bin",
        names: "batches.meta.txt",
        marks: &["data_batch_1.bin"],
    },
    Form {
        set: &CIFAR10,
        folder: "cifar-10-batches-py",
        archive: "cifar-10-python.tar.gz",
        coding: Coding::Python { labels: "labels", names: "label_names" },
        train: &["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"],
        test: "test_batch",
        names: "batches.meta",
        marks: &["data_batch_1"],
    },
    Form {
        set: &CIFAR100,
        folder: "cifar-100-binary",
        archive: "cifar-100-binary.tar.gz",
        coding: Coding::Binary { label_bytes: 2 },
        train: &["train.bin"],
        test: "test.bin",
        names: "fine_label_names.txt",
        marks: &["train.bin", "test.bin"],
    },
    Form {
        set: &CIFAR100,
        folder: "cifar-100-python",
        archive: "cifar-100-python.tar.gz",
        coding: Coding::Python { labels: "fine_labels", names: "fine_label_names" },
        train: &["train"],
        test: "test",
        names: "meta",
        marks: &["train", "meta"],
    },
];
