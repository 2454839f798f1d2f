//! An ONNX file that makes vectors of pictures, read, judged and ready to run.

use std::fmt;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use anchorhood_data::Resize;
use anchorhood_storage::{open_regular, read_at_most};
use twox_hash::XxHash3_128;

use crate::SearchError;
use crate::onnx::header::External;
use crate::onnx::session::{Session, Values};
use crate::onnx::{Header, Kind, PictureInput, Preprocessing, Runtime, VectorOutput};

/// What a file of Protocol Buffers can have.
const MOST_BYTES: u64 = i32::MAX as u64;
/// Values of all pictures that a file insists on getting at a time, at most: 256 MiB.
const MOST_VALUES: usize = 1 << 26;

/// Whether a file is meant to be an ONNX model, by its name.
pub fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("onnx"))
}

/// A network that makes vectors of pictures.
pub struct Encoder {
    path: PathBuf,
    runtime: &'static Runtime,
    session: Session,
    input: PictureInput,
    output: VectorOutput,
    preprocessing: Preprocessing,
    tables: Box<[[f32; 256]; 3]>,
    fingerprint: String,
}

impl Encoder {
    /// Reads a file, and runs it once over a picture of zeros. The values of all networks together
    /// take at most `most_bytes`, as said at the first call.
    pub fn load(path: &Path, most_bytes: u64) -> Result<Encoder, SearchError> {
        let bytes = read_at_most(path, MOST_BYTES).map_err(|e| SearchError::failed(path, e))?;
        let damaged =
            |why: String| SearchError::failed(path, format!("not a whole ONNX file: {why}"));
        let no_encoder = |why: String| {
            let what = "this ONNX model does not make one vector of a picture";
            SearchError::failed(path, format!("{what}: {why}"))
        };
        let header = Header::read(&bytes).map_err(damaged)?;
        let input = PictureInput::of(&header).map_err(no_encoder)?;
        let output = VectorOutput::choose(&header).map_err(no_encoder)?;
        let preprocessing = Preprocessing::of(path, &header, &input, &output)?;
        let size = preprocessing.size();
        check_room(&input, size).map_err(no_encoder)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let weights = weight_files(folder, &header.external).map_err(damaged)?;
        let fingerprint = fingerprint(&bytes, &weights, &preprocessing, &output)?;
        let runtime = Runtime::find(most_bytes)?;
        let refused = |why| refusal(path, runtime, why);
        let session =
            Session::new(runtime, &bytes, folder, &input.name, &output).map_err(refused)?;
        drop(bytes);
        let trial = trial(&session, &input, size).map_err(refused)?;
        let count = input.batch.unwrap_or(1);
        let output = VectorOutput::of(&output, count, &trial, input.layout).map_err(no_encoder)?;
        Ok(Encoder {
            path: path.into(),
            runtime,
            session,
            input,
            output,
            tables: Box::new(preprocessing.tables()),
            preprocessing,
            fingerprint,
        })
    }

    /// Length of a vector.
    pub fn dim(&self) -> usize {
        self.output.dim
    }

    /// Pictures that go through it together: one, unless the file insists on more.
    pub fn step(&self) -> usize {
        self.input.batch.unwrap_or(1)
    }

    /// What is done to a picture first.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// 32 hexadecimal digits of everything that decides what it makes of a picture.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The vectors of up to [`step`](Encoder::step) pictures of `size`×`size`×3 bytes each, as the
    /// network gives them. The thread that asks does the work.
    pub fn vectors(&self, squares: &[u8]) -> Result<Vec<f32>, SearchError> {
        let size = self.preprocessing.size();
        let (one, step) = (size * size * 3, self.step());
        let mut pixels = vec![0.0; step * one];
        for (bytes, to) in squares.chunks_exact(one).zip(pixels.chunks_exact_mut(one)) {
            self.input.write(bytes, &self.tables, to);
        }
        let refused = |why| refusal(&self.path, self.runtime, why);
        let shape = self.input.shape(step, size);
        let given = self.session.run(&shape, &mut pixels).map_err(refused)?;
        let layout = self.input.layout;
        let same = VectorOutput::of(&self.output.name, step, &given, layout);
        if same.as_ref() != Ok(&self.output) {
            return Err(refused(format!(
                "its output was {:?}, and is another shape for other pictures",
                given.shape
            )));
        }
        let mut vectors = vec![];
        let each = given.values.chunks_exact(given.values.len() / step);
        each.take(squares.len() / one)
            .for_each(|picture| self.output.vector(picture, layout, &mut vectors));
        Ok(vectors)
    }
}

impl fmt::Display for Encoder {
    /// What was found out about it.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let p = &self.preprocessing;
        let made = match self.output.kind {
            Kind::Vector => "",
            Kind::ClassToken => ", the first token",
            Kind::MeanOverPlaces => ", the mean over all places",
        };
        write!(
            f,
            "ONNX model, {0}, mean {1:?} and deviation {2:?} ({3}); vectors of {4} (output \
             `{5}`{made}); run by ONNX Runtime {6}",
            p.squaring,
            p.mean,
            p.std,
            p.source,
            self.output.dim,
            self.output.name,
            self.runtime.version()
        )
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {self}", self.path.display())
    }
}

fn check_room(input: &PictureInput, size: usize) -> Result<(), String> {
    let count = input.batch.unwrap_or(1);
    let values = input.shape(count, size).iter().product::<usize>();
    match values <= MOST_VALUES {
        true => Ok(()),
        false => Err(format!(
            "it takes {count} pictures of {size}×{size} pixels at a time, which is too much"
        )),
    }
}

/// What it gives for pictures of zeros.
fn trial(session: &Session, input: &PictureInput, size: usize) -> Result<Values, String> {
    let shape = input.shape(input.batch.unwrap_or(1), size);
    session.run(&shape, &mut vec![0.0; shape.iter().product()])
}

fn refusal(path: &Path, runtime: &Runtime, why: String) -> SearchError {
    let version = runtime.version();
    SearchError::failed(path, format!("ONNX Runtime {version} cannot run it: {why}"))
}

/// The files that weights lie in, each once: beside the ONNX file or below its folder, and as long
/// as they must be.
fn weight_files(folder: &Path, external: &[External]) -> Result<Vec<PathBuf>, String> {
    let mut files = vec![];
    for External { location, values } in external {
        let named = Path::new(location);
        let plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if !named.components().all(plain) {
            return Err(format!(
                "its weights are said to lie in {location:?}, which leads out of its folder"
            ));
        }
        let file = folder.join(named);
        let about = std::fs::metadata(&file);
        let about = about.map_err(|e| format!("its weights lie in {location:?} beside it: {e}"))?;
        if !about.is_file() || about.len() < values / 4 {
            return Err(format!(
                "its weights lie in {location:?} beside it, which is too short for them"
            ));
        }
        if !files.contains(&file) {
            files.push(file);
        }
    }
    Ok(files)
}

fn fingerprint(
    bytes: &[u8],
    weights: &[PathBuf],
    preprocessing: &Preprocessing,
    output: &str,
) -> Result<String, SearchError> {
    let mut hasher = XxHash3_128::new();
    hasher.write(bytes);
    for file in weights {
        hash_file(file, &mut hasher).map_err(|e| SearchError::failed(file, e))?;
    }
    hasher.write(output.as_bytes());
    let by = preprocessing.squaring;
    hasher.write(&(by.size as u64).to_le_bytes());
    if !by.is_ours() {
        let (tag, side) = match by.resize {
            Resize::CentreSquare => (0, by.size),
            Resize::ShorterSide(side) => (1, side),
            Resize::BothSides(side) => (2, side),
        };
        hasher.write(&[tag, by.interpolation as u8]);
        hasher.write(&(side as u64).to_le_bytes());
    }
    for value in preprocessing.mean.iter().chain(&preprocessing.std) {
        hasher.write(&value.to_le_bytes());
    }
    Ok(format!("{:032x}", hasher.finish_128()))
}

/// Weights may be larger than memory has room for twice.
fn hash_file(path: &Path, hasher: &mut XxHash3_128) -> std::io::Result<()> {
    let (mut file, mut part) = (open_regular(path)?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(()),
            length => hasher.write(&part[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_all_memory_is_refused() {
        let input = |batch| PictureInput {
            name: "x".into(),
            layout: crate::onnx::Layout::Nchw,
            size: None,
            batch,
        };
        assert!(check_room(&input(None), 4096).is_ok());
        assert!(check_room(&input(Some(1024)), 4096).unwrap_err().contains("1024 pictures"));
    }

    #[test]
    fn weights_lie_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |location: &str, values| External { location: location.into(), values };
        std::fs::write(folder.path().join("m.data"), [0; 40]).unwrap();
        let found = weight_files(folder.path(), &[at("m.data", 10), at("./m.data", 10)]);
        assert_eq!(found.unwrap().len(), 1, "one file, named in two ways");
        for (location, values, why) in [
            ("../m.data", 1, "out of its folder"),
            ("/etc/passwd", 1, "out of its folder"),
            ("no.data", 1, "no.data"),
            ("m.data", 1000, "too short"),
            (".", 1, "too short"),
        ] {
            let said = weight_files(folder.path(), &[at(location, values)]).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
