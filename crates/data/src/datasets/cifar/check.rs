//! Is a copy of CIFAR whole, and are its pixels the published ones?

use std::io::Read;
use std::path::Path;

use anchorhood_storage::open_regular;
use md5::{Digest, Md5};

use super::source::Source;
use super::{class_names, is_of, split};
use crate::DataError;
use crate::check::CheckReport;
use crate::datasets::{DATASETS, DatasetSpec};
use crate::statistics::Sums;

/// Looks at every file of the set at `path`.
pub(super) fn check(set: &'static DatasetSpec, path: &Path) -> Result<CheckReport, DataError> {
    let sum = archive_sum(path)?;
    let mut report = CheckReport::new(set.title, path);
    if let Some(what) = &sum {
        report.problem(path.display().to_string(), what.clone());
    }
    let mut source = match Source::find(path, is_of(set)) {
        Ok(Some(source)) => source,
        Ok(None) => return Err(set.not_at(path)),
        // An archive that cannot be read has another sum as well; that says it best.
        Err(error) if sum.is_some() => {
            report.set = "an archive".into();
            report.error(path, &error);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    let (form, classes) = (source.form, class_names(&mut source));
    let (mut found, mut sums, mut bad) = ([0; 2], [Sums::default(); 2], Vec::new());
    let parts = [(form.train, form.records()[0]), (&[form.test][..], form.records()[1])];
    for (part, (files, records)) in parts.into_iter().enumerate() {
        for file in files {
            match split(&mut source, &[file], records, &classes) {
                Ok(images) => {
                    found[part] += images.pictures.len();
                    sums[part] = sums[part] + Sums::of(images.pictures.raw());
                }
                Err(error) => bad.push((source.path(file), error)),
            }
        }
    }
    report.count("train", found[0], Some(set.train));
    report.count("test", found[1], Some(set.test));
    for (file, error) in &bad {
        report.error(file, error);
    }
    if report.is_whole() && !form.can_be(sums[0], sums[1]) {
        let form = format!("has the form of {}", set.title);
        let but = "and other pixels than the published pictures; no result on it compares with";
        report.warning(path, format!("{form}, {but} others'"));
    }
    Ok(report)
}

/// What is wrong with the sum of an official archive; nothing for other files.
fn archive_sum(path: &Path) -> Result<Option<String>, DataError> {
    let name = path.file_name().unwrap_or_default();
    let mut archives = DATASETS.all().into_iter().flat_map(|set| set.archives);
    let archive = archives.find(|archive| name == archive.file);
    let Some(archive) = archive.filter(|_| path.is_file()) else {
        return Ok(None);
    };
    let sum = md5_of(path).map_err(|e| DataError::io(path, e))?;
    Ok((sum != archive.md5)
        .then(|| format!("expected the MD5 sum {}, found {sum}; fetch it again", archive.md5)))
}

/// MD5 of a file's bytes, in hexadecimal.
fn md5_of(path: &Path) -> std::io::Result<String> {
    let mut file = open_regular(path)?;
    let mut hash = Md5::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    let sum = hash.finalize();
    Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
}
