//! What is done to a picture before the network sees it? Told by the file itself, by what lies
//! beside it, or by what its kind usually wants.

use std::fmt;
use std::path::{Path, PathBuf};

use anchorhood_data::{Interpolation, Resize, Squaring};
use anchorhood_storage::read_text_at_most;
use serde_json::Value as Json;

use crate::SearchError;
use crate::onnx::{Header, PictureInput};

/// A mean and a standard deviation of each channel, of values in [0, 1].
pub type MeanAndStd = ([f32; 3], [f32; 3]);

/// ImageNet's, which most networks expect.
pub const IMAGENET: MeanAndStd = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
/// CLIP's own.
pub const CLIP: MeanAndStd =
    ([0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]);
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

/// What is done to a picture: a square of it, RGB, `(value / 255 − mean) / std`.
#[derive(Clone, Debug, PartialEq)]
pub struct Preprocessing {
    /// How it becomes a square.
    pub squaring: Squaring,
    /// Mean of each channel.
    pub mean: [f32; 3],
    /// Standard deviation of each channel.
    pub std: [f32; 3],
    /// Who said what mean and deviation are.
    pub source: Source,
}

/// What one of those who may say something says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Pixels a side.
    pub size: Option<usize>,
    /// What is resized, for squares of that size.
    pub resize: Option<Resize>,
    /// By which filter.
    pub interpolation: Option<Interpolation>,
    /// What is done that cannot be done here.
    pub refused: Option<String>,
    /// Mean and standard deviation.
    pub mean_and_std: Option<MeanAndStd>,
}

impl Preprocessing {
    /// What is to be done for the file at `path`. The graph's own size, where it has one, is the
    /// only possible one.
    pub fn of(
        path: &Path,
        header: &Header,
        input: &PictureInput,
        output: &str,
    ) -> Result<Self, SearchError> {
        let mut told = vec![(Source::File, in_metadata(header))];
        told.extend(beside(path));
        let squaring = squaring(input.size, &told);
        let squaring = squaring.map_err(|(says, why)| {
            let why = format!(
                "images {why}, {says}; this program does not do so, and the vectors would be others \
                 than the model's. Where another way will do, change that entry"
            );
            SearchError::failed(path, why)
        })?;
        let normalised = |(source, t): &(Source, Told)| Some((source.clone(), t.mean_and_std?));
        let found = told.iter().find_map(normalised);
        let (source, (mean, std)) = found.unwrap_or_else(|| usual(path, header, output));
        Ok(Preprocessing { squaring, mean, std, source })
    }

    /// Pixels a side.
    pub fn size(&self) -> usize {
        self.squaring.size
    }

    /// What becomes of each byte of each channel.
    pub(crate) fn tables(&self) -> [[f32; 256]; 3] {
        let value = |c: usize, byte: usize| (byte as f32 / 255.0 - self.mean[c]) / self.std[c];
        std::array::from_fn(|c| std::array::from_fn(|byte| value(c, byte)))
    }
}

/// How pictures become squares for a graph of a size, or of any: by the first who says how. Sides
/// that are said of another size are in proportion.
fn squaring(graph: Option<usize>, told: &[(Source, Told)]) -> Result<Squaring, (Source, String)> {
    let size = graph.or(told.iter().find_map(|(_, t)| t.size));
    let size = size.unwrap_or(USUAL_SIZE);
    let says = |(_, t): &&(Source, Told)| {
        t.resize.is_some() || t.interpolation.is_some() || t.refused.is_some()
    };
    let Some((source, told)) = told.iter().find(says) else {
        return Ok(size.into());
    };
    let refused = |why: String| Err((source.clone(), why));
    if let Some(why) = &told.refused {
        return refused(why.clone());
    }
    let side = |side: usize| side * size / told.size.unwrap_or(size);
    let resize = match told.resize.unwrap_or_default() {
        Resize::CentreSquare => Resize::CentreSquare,
        Resize::ShorterSide(n) => Resize::ShorterSide(side(n)),
        Resize::BothSides(n) => Resize::BothSides(side(n)),
    };
    let by = Squaring { size, resize, interpolation: told.interpolation.unwrap_or_default() };
    match by.resize {
        Resize::ShorterSide(n) | Resize::BothSides(n) if n < size => {
            refused(format!("are resized to {n} pixels and given borders up to {size}"))
        }
        Resize::ShorterSide(n) | Resize::BothSides(n) if n as u64 > LARGEST => {
            refused(format!("are resized to {n} pixels, more than {LARGEST}"))
        }
        _ => Ok(by),
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
    let size = note("input_size").as_ref().and_then(side);
    Told {
        size,
        // Networks of ours are given the centre square, whatever lies beside the file.
        resize: size.map(|_| Resize::CentreSquare),
        interpolation: None,
        refused: None,
        mean_and_std: both(note("mean").as_ref(), note("std").as_ref(), 1.0),
    }
}

/// What files beside it say; of a folder `onnx`, as Hugging Face's repositories have one, those
/// above it too.
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

/// What a `preprocessor_config.json` (Hugging Face) or `config.json` (timm) says; nothing where it
/// is no JSON.
pub fn read_json(text: &str) -> Option<Told> {
    let json: Json = serde_json::from_str(text).ok()?;
    let timm = json.get("pretrained_cfg").unwrap_or(&json);
    let told = match timm.get("input_size") {
        Some(size) => timm_squaring(timm, size),
        None => hugging_face_squaring(&json),
    };
    let mean_and_std = both(timm.get("mean"), timm.get("std"), 1.0);
    Some(Told { mean_and_std: mean_and_std.or_else(|| hugging_face(&json)), ..told })
}

/// timm resizes to the size divided by `crop_pct`, and cuts the centre out.
fn timm_squaring(timm: &Json, input_size: &Json) -> Told {
    let (height, width) = (input_size.get(1), input_size.get(2));
    let size = width.and_then(side);
    let word = |name: &str| timm.get(name).and_then(Json::as_str);
    let crop = timm.get("crop_pct").and_then(Json::as_f64);
    let crop = crop.filter(|crop| (0.01..=1.0).contains(crop));
    let resized = |crop: f64| size.map(|size| (size as f64 / crop) as usize);
    let (resize, border) = match (word("crop_mode").unwrap_or("center"), crop) {
        ("center", Some(crop)) => (resized(crop).map(Resize::ShorterSide), None),
        ("squash", crop) => (resized(crop.unwrap_or(1.0)).map(Resize::BothSides), None),
        ("center", None) => (None, None),
        (mode, _) => (None, Some(format!("are cut by the crop mode `{mode}`"))),
    };
    let (interpolation, filter) = match word("interpolation") {
        None => (None, None),
        Some("bilinear") => (Some(Interpolation::Bilinear), None),
        Some("bicubic") => (Some(Interpolation::Bicubic), None),
        Some(other) => (None, Some(format!("are resized by the filter `{other}`"))),
    };
    let oblong = (height != width).then(|| "are made oblong, not square".into());
    Told { size, resize, interpolation, refused: oblong.or(border).or(filter), mean_and_std: None }
}

/// Hugging Face's processors resize a shorter side, or both sides whatever the shape, and may cut
/// the centre out.
fn hugging_face_squaring(json: &Json) -> Told {
    let is = |name: &str, value: bool| json.get(name) == Some(&Json::Bool(value));
    let size = json.get("size");
    let crop = json.get("crop_size");
    let crop = crop.filter(|_| !is("do_center_crop", false));
    let named = |name: &str| size.and_then(|size| side(size.get(name)?));
    let (shortest, whole) = (named("shortest_edge"), size.and_then(side));
    let cut = crop.and_then(side);
    let part = json.get("crop_pct").and_then(Json::as_f64);
    let part = part.filter(|part| (0.01..=1.0).contains(part));
    let resize = match (shortest, whole, cut, part) {
        (Some(n), _, Some(_), _) => Some(Resize::ShorterSide(n)),
        // As ConvNeXt's does: small ones are cut, large ones are not.
        (Some(n), _, None, Some(part)) if n < 384 => {
            Some(Resize::ShorterSide((n as f64 / part) as usize))
        }
        (Some(n), _, None, Some(_)) => Some(Resize::BothSides(n)),
        // What is not cut would not be square: the centre is what a network of squares can be
        // given.
        (Some(_), _, None, None) => None,
        (None, Some(n), Some(_), _) if size.is_some_and(Json::is_u64) => {
            Some(Resize::ShorterSide(n))
        }
        (None, Some(n), ..) => Some(Resize::BothSides(n)),
        (None, None, ..) => None,
    };
    let (interpolation, filter) = match json.get("resample").and_then(Json::as_u64) {
        None => (None, None),
        Some(2) => (Some(Interpolation::Bilinear), None),
        Some(3) => (Some(Interpolation::Bicubic), None),
        Some(other) => (None, Some(format!("are resized by Pillow's filter {other}"))),
    };
    let oblong = |of: Option<&Json>| {
        let side = |name: &str| of.and_then(|of| of.get(name));
        side("height").is_some() && side("height") != side("width")
    };
    let refused = match () {
        () if oblong(size) || oblong(crop) => Some("are made oblong, not square".into()),
        () if is("do_resize", false) && size.is_some() => Some("are not resized at all".into()),
        () if is("do_pad", true) => Some("are given borders".into()),
        () => filter,
    };
    Told { size: cut.or(whole), resize, interpolation, refused, mean_and_std: None }
}

/// Values are multiplied by a factor, 1/255 unless it is said, and then normalised, unless that is
/// denied.
fn hugging_face(json: &Json) -> Option<MeanAndStd> {
    let said_no = |name: &str| json.get(name) == Some(&Json::Bool(false));
    let factor = json.get("rescale_factor").and_then(Json::as_f64);
    let factor = if said_no("do_rescale") { 1.0 } else { factor.unwrap_or(1.0 / 255.0) };
    let scale = 255.0 * factor; // of values in [0, 1]
    match said_no("do_normalize") {
        true => both(Some(&vec![0.0; 3].into()), Some(&vec![1.0; 3].into()), scale),
        false => both(json.get("image_mean"), json.get("image_std"), scale),
    }
}

/// Mean and deviation of values in [0, 1], where those of values in [0, `scale`] are given and make
/// sense.
fn both(mean: Option<&Json>, std: Option<&Json>, scale: f64) -> Option<MeanAndStd> {
    let (mean, std) = (three(mean?, scale)?, three(std?, scale)?);
    let sensible = std.iter().all(|s| *s > 1e-6);
    sensible.then_some((mean, std))
}

fn three(list: &Json, scale: f64) -> Option<[f32; 3]> {
    let list: Vec<f64> = list.as_array()?.iter().filter_map(Json::as_f64).collect();
    let three: [f64; 3] = list.try_into().ok()?;
    // The factor is 1/255 with some digits: 1 is meant.
    let scale = if (scale - 1.0).abs() < 1e-6 { 1.0 } else { scale };
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
    use crate::onnx::Layout;

    fn preprocessing(path: &Path, metadata: &[(&str, &str)], size: Option<usize>) -> Preprocessing {
        let header = Header {
            metadata: metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            ..Header::default()
        };
        Preprocessing::of(path, &header, &input(size), "y").unwrap()
    }

    fn input(size: Option<usize>) -> PictureInput {
        PictureInput { name: "x".into(), layout: Layout::Nchw, size, batch: None }
    }

    #[test]
    fn the_file_then_what_lies_beside_it_then_its_kind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("model.onnx");
        let plain = preprocessing(&file, &[], None);
        assert_eq!((plain.size(), (plain.mean, plain.std)), (224, IMAGENET));
        assert_eq!(plain.source, Source::Usual);
        let clip = preprocessing(&folder.path().join("CLIP-b32.onnx"), &[], None);
        assert_eq!((clip.mean, clip.std), CLIP);
        let timm = r#"{"pretrained_cfg":
            {"input_size": [3, 96, 96], "mean": [0.1, 0.2, 0.3], "std": [1, 2, 3]}}"#;
        std::fs::write(folder.path().join("config.json"), timm).unwrap();
        let beside = preprocessing(&file, &[], None);
        assert_eq!(
            (beside.size(), beside.mean, beside.std),
            (96, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
        );
        assert!(matches!(beside.source, Source::Beside(_)));
        let ours = [("input_size", "48"), ("mean", "[0.4,0.4,0.4]"), ("std", "[0.2,0.2,0.2]")];
        let own = preprocessing(&file, &ours, None);
        assert_eq!((own.size(), own.mean, own.source), (48, [0.4; 3], Source::File));
        assert_eq!(preprocessing(&file, &ours, Some(64)).size(), 64, "the graph's own");
    }

    #[test]
    fn above_a_folder_called_onnx_too() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("onnx");
        std::fs::create_dir(&inner).unwrap();
        let text = r#"{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
            "size": {"shortest_edge": 256}, "crop_size": {"height": 128, "width": 128},
             "rescale_factor": 0.00392156862745098}"#;
        std::fs::write(folder.path().join("preprocessor_config.json"), text).unwrap();
        let found = preprocessing(&inner.join("model.onnx"), &[], None);
        assert_eq!((found.size(), found.mean, found.std), (128, [0.5; 3], [0.5; 3]));
    }

    /// What is said of squares of 224 pixels, at that size or another.
    fn squared(text: &str, graph: Option<usize>) -> Result<Squaring, String> {
        let told = [(Source::File, read_json(text).unwrap())];
        squaring(graph, &told).map_err(|(_, why)| why)
    }

    /// What is said, below what is to be done.
    const SAID: &str = r#"
# timm's resnet50.a1_in1k, vit_base_patch16_clip_224.openai, and one that is squashed.
224 ShorterSide(235) Bicubic
{"pretrained_cfg": {"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 0.95}}
224 ShorterSide(224) Bicubic
{"input_size": [3, 224, 224], "interpolation": "bicubic", "crop_pct": 1.0, "crop_mode": "center"}
240 BothSides(250) Bilinear
{"input_size": [3, 240, 240], "interpolation": "bilinear", "crop_pct": 0.96, "crop_mode": "squash"}
# openai/clip-vit-base-patch32 and facebook/dinov2-base.
224 ShorterSide(224) Bicubic
{"crop_size": 224, "do_center_crop": true, "do_resize": true, "resample": 3, "size": 224}
224 ShorterSide(256) Bicubic
{"crop_size": {"height": 224, "width": 224}, "resample": 3, "size": {"shortest_edge": 256}}
# google/vit-base-patch16-224 of two versions, and google/siglip-base-patch16-224.
224 BothSides(224) Bilinear
{"resample": 2, "size": 224}
224 BothSides(224) Bicubic
{"resample": 3, "size": {"height": 224, "width": 224}}
# facebook/deit-base and facebook/convnext-tiny-224, -384.
224 BothSides(256) Bicubic
{"crop_size": {"height": 224, "width": 224}, "resample": 3, "size": {"height": 256, "width": 256}}
224 ShorterSide(256) Bicubic
{"crop_pct": 0.875, "resample": 3, "size": {"shortest_edge": 224}}
384 BothSides(384) Bicubic
{"crop_pct": 0.875, "resample": 3, "size": {"shortest_edge": 384}}
# Nothing of it.
224 CentreSquare Bilinear
{"image_mean": [0, 0, 0]}"#;

    #[test]
    fn resizing_and_cutting_are_followed() {
        let mut lines = SAID.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        while let (Some(expected), Some(text)) = (lines.next(), lines.next()) {
            let Squaring { size, resize, interpolation } = squared(text, None).unwrap();
            assert_eq!(format!("{size} {resize:?} {interpolation:?}"), expected, "{text}");
        }
        let of_112 = squared(r#"{"crop_size": 224, "size": {"shortest_edge": 256}}"#, Some(112));
        assert_eq!(of_112.unwrap().resize, Resize::ShorterSide(128), "in proportion");
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for text in [
            r#"{"input_size": [3, 224, 224], "interpolation": "lanczos"}"#,
            r#"{"input_size": [3, 224, 224], "crop_mode": "border", "crop_pct": 0.9}"#,
            r#"{"input_size": [3, 224, 160]}"#,
            r#"{"resample": 0, "size": 224}"#,
            r#"{"size": {"height": 224, "width": 160}}"#,
            r#"{"size": {"shortest_edge": 224}, "crop_size": 256}"#,
            r#"{"size": {"shortest_edge": 4096}, "crop_size": 100}"#,
            r#"{"size": 224, "do_resize": false}"#,
            r#"{"size": 224, "do_pad": true}"#,
        ] {
            let graph = text.contains("4096").then_some(224);
            assert!(squared(text, graph).is_err(), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let text = r#"{"resample": 0, "size": 224}"#;
        std::fs::write(folder.path().join("preprocessor_config.json"), text).unwrap();
        let file = folder.path().join("model.onnx");
        let refused = Preprocessing::of(&file, &Header::default(), &input(None), "y").unwrap_err();
        let says = Source::Beside(folder.path().join("preprocessor_config.json"));
        assert!(refused.to_string().contains(&says.to_string()), "{refused}");
    }

    #[test]
    fn hugging_faces_ways_of_saying_it() {
        let told = |text: &str| read_json(text).unwrap();
        let uncut = told(r#"{"size": 256, "crop_size": 224, "do_center_crop": false}"#);
        assert_eq!(uncut.size, Some(256));
        let bytes = told(
            r#"{"do_rescale": false, "image_mean": [127.5, 127.5, 127.5],
                "image_std": [51, 51, 51]}"#,
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
