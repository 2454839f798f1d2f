//! What is done to a picture before the network sees it? Told by the file itself, by what lies beside it, or by what its kind
//! usually wants.

use std::fmt;
use std::path::{Path, PathBuf};

use anchorhood_files::read_text_at_most;
use serde_json::Value as Json;

use crate::{Header, PictureInput};

/// A mean and a standard deviation of each channel, of values in [0, 1].
pub type MeanAndStd = ([f32; 3], [f32; 3]);

/// ImageNet's, which most networks expect.
pub const IMAGENET: MeanAndStd = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
/// CLIP's own.
pub const CLIP: MeanAndStd = (
    [0.481_454_66, 0.457_827_5, 0.408_210_73],
    [0.268_629_54, 0.261_302_6, 0.275_777_1],
);
/// SigLIP's.
const SIGLIP: MeanAndStd = ([0.5; 3], [0.5; 3]);

/// Pixels a side where nobody says how many.
const USUAL_SIZE: usize = 224;
/// Pixels a side, at most.
const LARGEST: u64 = 4096;
/// Bytes of what lies beside a file, at most.
const MOST_BYTES: u64 = 1 << 20;
/// What Hugging Face's libraries and timm call it.
const BESIDE: [&str; 2] = ["preprocessor_config.json", "config.json"];

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The ONNX file's own metadata.
    File,
    /// A file beside it.
    Beside(PathBuf),
    /// Its kind, by its name or its output's: CLIP, SigLIP.
    Kind(&'static str),
    /// Nobody: ImageNet's are usual.
    Usual,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Source::File => f.write_str("as the file says"),
            Source::Beside(path) => write!(f, "as {} says", path.display()),
            Source::Kind(kind) => write!(f, "{kind}'s"),
            Source::Usual => f.write_str("ImageNet's, for want of others"),
        }
    }
}

/// What is done to a picture: its centre as a square, resized, RGB, `(value / 255 − mean) / std`.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessing {
    /// Pixels a side.
    pub size: usize,
    /// Mean of each channel.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
    /// Who said what mean and deviation are.
    pub source: Source,
}

/// What one of those who may say something says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Told {
    /// Pixels a side.
    pub size: Option<usize>,
    /// Mean and standard deviation.
    pub mean_and_std: Option<MeanAndStd>,
}

impl Preprocessing {
    /// What is to be done for the file at `path`. The graph's own size, where it has one, is the only possible one.
    pub fn of(path: &Path, header: &Header, input: &PictureInput, output: &str) -> Self {
        let mut told = vec![(Source::File, in_metadata(header))];
        told.extend(beside(path));
        let size = told.iter().find_map(|(_, t)| t.size);
        let normalised = |(source, t): &(Source, Told)| Some((source.clone(), t.mean_and_std?));
        let found = told.iter().find_map(normalised);
        let (source, (mean, std)) = found.unwrap_or_else(|| usual(path, header, output));
        Preprocessing {
            size: input.size.or(size).unwrap_or(USUAL_SIZE),
            mean,
            std,
            source,
        }
    }

    /// What becomes of each byte of each channel.
    pub(crate) fn tables(&self) -> [[f32; 256]; 3] {
        let value = |c: usize, byte: usize| (byte as f32 / 255.0 - self.mean[c]) / self.std[c];
        std::array::from_fn(|c| std::array::from_fn(|byte| value(c, byte)))
    }
}

/// What its kind expects.
fn usual(path: &Path, header: &Header, output: &str) -> (Source, MeanAndStd) {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let names = format!("{file} {}", header.name).to_lowercase();
    match () {
        () if names.contains("siglip") => (Source::Kind("SigLIP"), SIGLIP),
        () if names.contains("clip") || output == "image_embeds" => (Source::Kind("CLIP"), CLIP),
        () => (Source::Usual, IMAGENET),
    }
}

/// What `anchorhood export --onnx` writes.
fn in_metadata(header: &Header) -> Told {
    let note = |name: &str| {
        let found = header.metadata.iter().find(|(key, _)| key == name)?;
        serde_json::from_str::<Json>(&found.1).ok()
    };
    Told {
        size: note("input_size").as_ref().and_then(side),
        mean_and_std: both(note("mean").as_ref(), note("std").as_ref(), 1.0),
    }
}

/// What files beside it say; of a folder `onnx`, as Hugging Face's repositories have one, those above it too.
fn beside(path: &Path) -> Vec<(Source, Told)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let above = folder.parent().filter(|_| folder.ends_with("onnx"));
    let folders = std::iter::once(folder).chain(above);
    let files = folders.flat_map(|folder| BESIDE.map(|name| folder.join(name)));
    let read = |file: PathBuf| {
        let text = read_text_at_most(&file, MOST_BYTES).ok()?;
        Some((Source::Beside(file), read_json(&text)?))
    };
    files.filter_map(read).collect()
}

/// What a `preprocessor_config.json` (Hugging Face) or `config.json` (timm) says; nothing where it is no JSON.
pub fn read_json(text: &str) -> Option<Told> {
    let json: Json = serde_json::from_str(text).ok()?;
    let timm = json.get("pretrained_cfg").unwrap_or(&json);
    let told = Told {
        size: timm.get("input_size").and_then(|s| side(s.get(2)?)),
        mean_and_std: both(timm.get("mean"), timm.get("std"), 1.0),
    };
    let cut = json.get("do_center_crop") != Some(&Json::Bool(false));
    let cropped = json.get("crop_size").filter(|_| cut).and_then(side);
    let size = cropped.or_else(|| json.get("size").and_then(side));
    Some(Told {
        size: told.size.or(size),
        mean_and_std: told.mean_and_std.or_else(|| hugging_face(&json)),
    })
}

/// Values are multiplied by a factor, 1/255 unless it is said, and then normalised, unless that is denied.
fn hugging_face(json: &Json) -> Option<MeanAndStd> {
    let said_no = |name: &str| json.get(name) == Some(&Json::Bool(false));
    let factor = json.get("rescale_factor").and_then(Json::as_f64);
    let factor = match said_no("do_rescale") {
        true => 1.0,
        false => factor.unwrap_or(1.0 / 255.0),
    };
    let scale = 255.0 * factor; // of values in [0, 1]
    match said_no("do_normalize") {
        true => both(
            Some(&vec![0.0; 3].into()),
            Some(&vec![1.0; 3].into()),
            scale,
        ),
        false => both(json.get("image_mean"), json.get("image_std"), scale),
    }
}

/// Mean and deviation of values in [0, 1], where those of values in [0, `scale`] are given and make sense.
fn both(mean: Option<&Json>, std: Option<&Json>, scale: f64) -> Option<MeanAndStd> {
    let (mean, std) = (three(mean?, scale)?, three(std?, scale)?);
    let sensible = std.iter().all(|s| *s > 1e-6);
    sensible.then_some((mean, std))
}

fn three(list: &Json, scale: f64) -> Option<[f32; 3]> {
    let list: Vec<f64> = list.as_array()?.iter().filter_map(Json::as_f64).collect();
    let three: [f64; 3] = list.try_into().ok()?;
    // The factor is 1/255 with some digits: 1 is meant.
    let scale = if (scale - 1.0).abs() < 1e-6 {
        1.0
    } else {
        scale
    };
    let three = three.map(|v| (v / scale) as f32);
    three.iter().all(|v| v.abs() < 1e6).then_some(three)
}

/// A number of pixels: itself, or that of a height or a shorter edge.
fn side(json: &Json) -> Option<usize> {
    let named = || json.get("height").or_else(|| json.get("shortest_edge"));
    let pixels = json.as_u64().or_else(|| named()?.as_u64())?;
    (1..=LARGEST).contains(&pixels).then_some(pixels as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn preprocessing(path: &Path, metadata: &[(&str, &str)], size: Option<usize>) -> Preprocessing {
        let header = Header {
            metadata: metadata
                .iter()
                .map(|(k, v)| (k.to_string(), v.to_string()))
                .collect(),
            ..Header::default()
        };
        let input = PictureInput {
            name: "x".into(),
            layout: Layout::Nchw,
            size,
            batch: None,
        };
        Preprocessing::of(path, &header, &input, "y")
    }

    #[test]
    fn the_file_then_what_lies_beside_it_then_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.onnx");
        let plain = preprocessing(&file, &[], None);
        assert_eq!((plain.size, (plain.mean, plain.std)), (224, IMAGENET));
        assert_eq!(plain.source, Source::Usual);
        let clip = preprocessing(&folder.path().join("CLIP-b32.onnx"), &[], None);
        assert_eq!((clip.mean, clip.std), CLIP);
        let timm = r#"{"pretrained_cfg": {"input_size": [3, 96, 96], "mean": [0.1, 0.2, 0.3], "std": [1, 2, 3]}}"#;
        std::fs::write(folder.path().join("config.json"), timm).unwrap();
        let beside = preprocessing(&file, &[], None);
        assert_eq!(
            (beside.size, beside.mean, beside.std),
            (96, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
        );
        assert!(matches!(beside.source, Source::Beside(_)));
        let ours = [
            ("input_size", "48"),
            ("mean", "[0.4,0.4,0.4]"),
            ("std", "[0.2,0.2,0.2]"),
        ];
        let own = preprocessing(&file, &ours, None);
        assert_eq!(
            (own.size, own.mean, own.source),
            (48, [0.4; 3], Source::File)
        );
        assert_eq!(
            preprocessing(&file, &ours, Some(64)).size,
            64,
            "the graph's own"
        );
    }

    #[test]
    fn above_a_folder_called_onnx_too() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("onnx");
        std::fs::create_dir(&inner).unwrap();
        let text = r#"{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": {"shortest_edge": 256},
            "crop_size": {"height": 128, "width": 128}, "rescale_factor": 0.00392156862745098}"#;
        std::fs::write(folder.path().join("preprocessor_config.json"), text).unwrap();
        let found = preprocessing(&inner.join("model.onnx"), &[], None);
        assert_eq!(
            (found.size, found.mean, found.std),
            (128, [0.5; 3], [0.5; 3])
        );
    }

    #[test]
    fn hugging_faces_ways_of_saying_it() {
        let told = |text: &str| read_json(text).unwrap();
        let uncut = told(r#"{"size": 256, "crop_size": 224, "do_center_crop": false}"#);
        assert_eq!(uncut.size, Some(256));
        let bytes = told(
            r#"{"do_rescale": false, "image_mean": [127.5, 127.5, 127.5], "image_std": [51, 51, 51]}"#,
        );
        assert_eq!(bytes.mean_and_std, Some(([0.5; 3], [0.2; 3])));
        let plain = told(r#"{"do_normalize": false}"#);
        assert_eq!(plain.mean_and_std, Some(([0.0; 3], [1.0; 3])));
        for nonsense in [
            r#"{"image_mean": [0, 0, 0], "image_std": [0, 1, 1]}"#,
            r#"{"image_mean": [0, 0], "image_std": [1, 1]}"#,
            r#"{"size": 0, "crop_size": 99999999}"#,
            r#"{"size": "large", "image_mean": 3}"#,
            "[]",
        ] {
            assert_eq!(told(nonsense), Told::default(), "{nonsense}");
        }
        assert_eq!(read_json("{"), None);
    }
}
