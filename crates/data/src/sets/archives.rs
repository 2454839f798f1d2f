//! Which files make up a published set, where they are downloaded from, and what their bytes must
//! add up to.

/// A file to download.
#[derive(Debug)]
pub struct Archive {
    /// Its official place.
    pub url: &'static str,
    /// What it is called on disk.
    pub file: &'static str,
    /// MD5 of its bytes, in hexadecimal, as its authors or the common loaders publish it.
    pub md5: &'static str,
    /// Roughly how long it is, for people.
    pub megabytes: u32,
    /// What unpacking it creates, for a tar; none where the file is the data itself.
    pub creates: Option<&'static str>,
    /// Needed only by those who ask for it.
    pub optional: bool,
}

/// The binary form: small, and read without a pickle. The sums stand on the authors' page.
pub(super) static CIFAR10: [Archive; 1] = [Archive {
    url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    file: "cifar-10-binary.tar.gz",
    md5: "c32a1d4ab5d03f1284b67883e8d87530",
    megabytes: 162,
    creates: Some("cifar-10-batches-bin"),
    optional: false,
}];

pub(super) static CIFAR100: [Archive; 1] = [Archive {
    url: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    file: "cifar-100-binary.tar.gz",
    md5: "03b5dce01913d631647c71ecec9e9cb8",
    megabytes: 161,
    creates: Some("cifar-100-binary"),
    optional: false,
}];

/// The sums are torchvision's; the authors publish none.
pub(super) static SVHN: [Archive; 3] = [
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
        file: "train_32x32.mat",
        md5: "e26dedcc434d2e4c54c9b2d4a06d8373",
        megabytes: 182,
        creates: None,
        optional: false,
    },
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
        file: "test_32x32.mat",
        md5: "eb5a983be6a315427106f1b164d9cef3",
        megabytes: 64,
        creates: None,
        optional: false,
    },
    Archive {
        url: "http://ufldl.stanford.edu/housenumbers/extra_32x32.mat",
        file: "extra_32x32.mat",
        md5: "a93ce644f1a588dc4d68dda5feec44a7",
        megabytes: 1329,
        creates: None,
        optional: true,
    },
];

/// The sum stands on CaltechDATA's record.
pub(super) static CUB200: [Archive; 1] = [Archive {
    url: "https://data.caltech.edu/records/65de6-vp158/files/CUB_200_2011.tgz",
    file: "CUB_200_2011.tgz",
    md5: "97eceeb196236b17998738112f37df78",
    megabytes: 1151,
    creates: Some("CUB_200_2011"),
    optional: false,
}];

/// The authors publish no sums; these are the ones several public loaders agree on.
pub(super) static DOGS: [Archive; 2] = [
    Archive {
        url: "http://vision.stanford.edu/aditya86/ImageNetDogs/images.tar",
        file: "images.tar",
        md5: "1bb1f2a596ae7057f99d7d75860002ef",
        megabytes: 757,
        creates: Some("Images"),
        optional: false,
    },
    Archive {
        url: "http://vision.stanford.edu/aditya86/ImageNetDogs/lists.tar",
        file: "lists.tar",
        md5: "edbb9f16854ec66506b5f09b583e0656",
        megabytes: 1,
        creates: Some("train_list.mat"),
        optional: false,
    },
];

#[cfg(test)]
mod tests {
    use crate::sets::SETS;

    #[test]
    fn every_archive_is_where_its_name_says_and_has_a_sum() {
        for archive in SETS.iter().flat_map(|set| set.archives) {
            assert!(archive.url.ends_with(archive.file), "{}", archive.url);
            assert_eq!(archive.md5.len(), 32, "{}", archive.file);
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(archive.md5.chars().all(hex), "{}", archive.file);
        }
    }
}
