//! What does an ONNX file take and give? Read by ourselves, from its bytes, before any other
//! program sees them.
//!
//! A file that somebody wrote to harm is refused here where it could make its reader do more than
//! its size warrants: weights that are not in it, graphs within graphs without end, functions of
//! functions, loops. Fields are named and numbered as in `onnx.proto`.

use std::collections::BTreeSet;

use anchorhood_files::protobuf::{Message, Wire, fields};
use anchorhood_files::{protobuf, read_varint};

use crate::functions::Calls;
use crate::plain::plain;

/// Graphs within graphs (the branches of a condition), at most.
const DEEPEST: usize = 8;
/// Weights take at least so much of a byte each, in any of ONNX's types: two bits.
const VALUES_IN_A_BYTE: u64 = 4;

/// One of a tensor's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// So many.
    Fixed(usize),
    /// As many as there are.
    Any,
}

/// What goes in or comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its name, as it may be shown.
    pub name: String,
    /// `TensorProto.DataType`: 1 is 32-bit floats; 0 where it is no tensor.
    pub element: i32,
    /// Its dimensions, where they are told.
    pub shape: Option<Vec<Dimension>>,
}

/// Weights that lie in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The file, as it is named.
    pub location: String,
    /// How many values are said to be there.
    pub values: u64,
}

/// What a file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The graph's name.
    pub name: String,
    /// What must be given.
    pub inputs: Vec<Value>,
    /// What can be had.
    pub outputs: Vec<Value>,
    /// Notes.
    pub metadata: Vec<(String, String)>,
    /// Weights elsewhere.
    pub external: Vec<External>,
}

impl Header {
    /// Reads a file's bytes; the reason says what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Header, String> {
        let mut walk = Walk::default();
        walk.model(bytes)?;
        walk.calls.check()?;
        let mut header = walk.header;
        let weights = walk.weights;
        header.inputs.retain(|input| !weights.contains(&input.name));
        match header.outputs.is_empty() {
            true => Err("there is no graph in it that gives anything".into()),
            false => Ok(header),
        }
    }
}

protobuf! {
    struct ValueInfo {
        name: String = 1,
        r#type: Option<Type> = 2,
    }
    struct Type {
        tensor: Option<TensorType> = 1,
    }
    struct TensorType {
        element: i32 = 1,
        shape: Option<Shape> = 2,
    }
    struct Shape {
        dim: Vec<Dim> = 1,
    }
    struct Dim {
        value: i64 = 1,
    }
    struct Entry {
        key: String = 1,
        value: String = 2,
    }
    struct OpType {
        op: String = 4,
        domain: String = 7,
    }
    struct FunctionName {
        name: String = 1,
        domain: String = 10,
    }
}

impl From<ValueInfo> for Value {
    fn from(info: ValueInfo) -> Value {
        let tensor = info.r#type.and_then(|t| t.tensor);
        let dimension = |dim: &Dim| match usize::try_from(dim.value) {
            Ok(n) if n > 0 => Dimension::Fixed(n),
            // Some exporters write 0 or −1 for a dimension that is not known.
            _ => Dimension::Any,
        };
        let shape = tensor.as_ref().and_then(|t| t.shape.as_ref());
        Value {
            name: plain(&info.name),
            element: tensor.as_ref().map_or(0, |t| t.element),
            shape: shape.map(|s| s.dim.iter().map(dimension).collect()),
        }
    }
}

/// A way through all of a file.
#[derive(Default)]
struct Walk {
    header: Header,
    /// Names of weights, which old files also list among the inputs.
    weights: BTreeSet<String>,
    calls: Calls,
    /// The function whose nodes are being read; none in the graph.
    within: Option<String>,
}

type Walked = Result<(), String>;

impl Walk {
    fn model(&mut self, bytes: &[u8]) -> Walked {
        each_field(bytes, |number, value| match number {
            7 => self.graph(part(value)?, 0),
            14 => {
                let entry: Entry = whole(value)?;
                self.header.metadata.push((entry.key, entry.value));
                Ok(())
            }
            20 => Err("it holds a training, not only a network".into()),
            25 => self.function(part(value)?),
            _ => Ok(()),
        })
    }

    fn graph(&mut self, bytes: &[u8], depth: usize) -> Walked {
        if depth > DEEPEST {
            return Err(format!("graphs lie within graphs, more than {DEEPEST} deep"));
        }
        each_field(bytes, |number, value| match number {
            1 => self.node(part(value)?, depth),
            2 if depth == 0 => {
                self.header.name = String::from_utf8_lossy(part(value)?).into_owned();
                Ok(())
            }
            5 => self.tensor(part(value)?, depth),
            11 if depth == 0 => {
                self.header.inputs.push(whole::<ValueInfo>(value)?.into());
                Ok(())
            }
            12 if depth == 0 => {
                self.header.outputs.push(whole::<ValueInfo>(value)?.into());
                Ok(())
            }
            15 => Err("it has sparse weights, which no image encoder has".into()),
            _ => Ok(()),
        })
    }

    fn node(&mut self, bytes: &[u8], depth: usize) -> Walked {
        let named = OpType::decode(bytes).ok_or(NO_MESSAGE)?;
        if ["Loop", "Scan"].contains(&named.op.as_str()) {
            return Err(format!(
                "it has a loop ({}), whose end cannot be known; image encoders have none",
                named.op
            ));
        }
        self.calls.add(&self.within, &named.domain, &named.op);
        each_field(bytes, |number, value| match number {
            5 => self.attribute(part(value)?, depth),
            _ => Ok(()),
        })
    }

    fn attribute(&mut self, bytes: &[u8], depth: usize) -> Walked {
        each_field(bytes, |number, value| match number {
            5 | 10 => self.tensor(part(value)?, depth + 1),
            6 | 11 => self.graph(part(value)?, depth + 1),
            22 | 23 => Err("it has sparse weights, which no image encoder has".into()),
            _ => Ok(()),
        })
    }

    fn function(&mut self, bytes: &[u8]) -> Walked {
        let named = FunctionName::decode(bytes).ok_or(NO_MESSAGE)?;
        self.within = Some(self.calls.declare(&named.domain, &named.name));
        let walked = each_field(bytes, |number, value| match number {
            7 => self.node(part(value)?, 0),
            11 => self.attribute(part(value)?, 0),
            _ => Ok(()),
        });
        self.within = None;
        walked
    }

    /// Weights that claim to be more than there is room for would take memory that the file never
    /// had.
    fn tensor(&mut self, bytes: &[u8], depth: usize) -> Walked {
        let (mut values, mut elsewhere, mut name, mut location) =
            (1_u64, false, String::new(), None);
        each_field(bytes, |number, value| {
            match (number, value) {
                (1, Wire::Varint(n)) => values = values.saturating_mul(n),
                (1, Wire::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        let n = read_varint(&mut packed).ok_or(NO_MESSAGE)?;
                        values = values.saturating_mul(n);
                    }
                }
                (8, value) => name = plain(&String::from_utf8_lossy(part(value)?)),
                (13, value) => {
                    let entry: Entry = whole(value)?;
                    if entry.key == "location" {
                        location = Some(entry.value);
                    }
                }
                (14, Wire::Varint(place)) => elsewhere = place != 0,
                _ => {}
            }
            Ok(())
        })?;
        if elsewhere {
            let location =
                location.ok_or(format!("weights `{name}` lie in a file without a name"))?;
            self.header.external.push(External { location, values });
        } else if values > (bytes.len() as u64).saturating_mul(VALUES_IN_A_BYTE) {
            return Err(format!(
                "weights `{name}` claim to be {values} values, and have {} bytes",
                bytes.len()
            ));
        }
        if depth == 0 {
            self.weights.insert(name);
        }
        Ok(())
    }
}

const NO_MESSAGE: &str = "the file ends early, was damaged, or is no ONNX file";

/// Every field of a message, until something is wrong.
fn each_field<'a>(bytes: &'a [u8], mut field: impl FnMut(u64, Wire<'a>) -> Walked) -> Walked {
    fields(bytes).try_for_each(|found| {
        let (number, value) = found.ok_or(NO_MESSAGE)?;
        field(number, value)
    })
}

/// The bytes of a message, a text or a list.
fn part(value: Wire<'_>) -> Result<&[u8], String> {
    match value {
        Wire::Bytes(bytes) => Ok(bytes),
        Wire::Varint(_) | Wire::Fixed64(_) | Wire::Fixed32(_) => Err(NO_MESSAGE.into()),
    }
}

/// A small message.
fn whole<M: Message>(value: Wire<'_>) -> Result<M, String> {
    M::decode(part(value)?).ok_or_else(|| NO_MESSAGE.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    protobuf! {
        struct File {
            graph: Option<Graph> = 7,
            metadata: Vec<Entry> = 14,
            functions: Vec<Function> = 25,
        }
        struct Graph {
            nodes: Vec<Node> = 1,
            name: String = 2,
            weights: Vec<Tensor> = 5,
            inputs: Vec<ValueInfo> = 11,
            outputs: Vec<ValueInfo> = 12,
        }
        struct Node {
            op: String = 4,
            attributes: Vec<Attribute> = 5,
        }
        struct Attribute {
            tensor: Option<Tensor> = 5,
            graph: Vec<u8> = 6,
        }
        struct Tensor {
            dims: Vec<i64> = 1,
            name: String = 8,
            raw: Vec<u8> = 9,
            external: Vec<Entry> = 13,
            place: i32 = 14,
        }
        struct Function {
            name: String = 1,
            nodes: Vec<Node> = 7,
        }
    }

    fn value(name: &str, dims: &[i64]) -> ValueInfo {
        let dim = dims.iter().map(|value| Dim { value: *value }).collect();
        ValueInfo {
            name: name.into(),
            r#type: Some(Type {
                tensor: Some(TensorType { element: 1, shape: Some(Shape { dim }) }),
            }),
        }
    }

    fn tensor(dims: &[i64], bytes: usize) -> Tensor {
        Tensor { dims: dims.into(), name: "w".into(), raw: vec![0; bytes], ..Tensor::default() }
    }

    fn node(op: &str) -> Node {
        Node { op: op.into(), ..Node::default() }
    }

    fn file(change: impl FnOnce(&mut File)) -> Vec<u8> {
        let mut file = File {
            graph: Some(Graph {
                nodes: vec![node("Conv")],
                name: "main".into(),
                weights: vec![tensor(&[8, 3], 96)],
                inputs: vec![value("x", &[-1, 3, 32, 32]), value("w", &[8, 3])],
                outputs: vec![value("y", &[0, 8])],
            }),
            metadata: vec![Entry { key: "a".into(), value: "b".into() }],
            functions: vec![],
        };
        change(&mut file);
        file.encode()
    }

    fn graph(change: impl FnOnce(&mut Graph)) -> Vec<u8> {
        file(|file| change(file.graph.as_mut().unwrap()))
    }

    #[test]
    fn inputs_outputs_and_notes_are_read() {
        let header = Header::read(&file(|_| {})).unwrap();
        assert_eq!(header.name, "main");
        assert_eq!(header.metadata, [("a".to_string(), "b".to_string())]);
        let [x] = &header.inputs[..] else { panic!("weights are no input: {:?}", header.inputs) };
        use Dimension::*;
        let shape = vec![Any, Fixed(3), Fixed(32), Fixed(32)];
        assert_eq!((x.name.as_str(), x.element, &x.shape), ("x", 1, &Some(shape)));
        assert_eq!(header.outputs[0].shape, Some(vec![Any, Fixed(8)]));
    }

    #[track_caller]
    fn refused(bytes: &[u8], why: &str) {
        let said = Header::read(bytes).unwrap_err();
        assert!(said.contains(why), "{said:?} lacks {why:?}");
    }

    #[test]
    fn more_than_the_file_has_is_refused() {
        refused(&graph(|g| g.weights = vec![tensor(&[1 << 40], 96)]), "claim");
        refused(&graph(|g| g.weights = vec![tensor(&[-1], 96)]), "claim");
        let constant =
            Attribute { tensor: Some(tensor(&[1 << 20, 1 << 20], 4)), ..Attribute::default() };
        refused(&graph(|g| g.nodes[0].attributes = vec![constant]), "claim");
        refused(&graph(|g| g.nodes.push(node("Loop"))), "loop");
        refused(&graph(|g| g.outputs.clear()), "no graph");
    }

    #[test]
    fn graphs_within_graphs_have_an_end() {
        let mut inner = Graph::default().encode();
        for _ in 0..20 {
            let mut outer = node("If");
            outer.attributes = vec![Attribute { graph: inner, ..Attribute::default() }];
            let outer = Graph { nodes: vec![outer], ..Graph::default() };
            inner = outer.encode();
        }
        refused(&file(|f| f.graph = Graph::decode(&inner)), "within graphs");
    }

    /// Ten functions, each of ten calls of the next: ten thousand million nodes in less than a
    /// kilobyte.
    #[test]
    fn functions_of_functions_are_counted() {
        let function = |i: usize| Function {
            name: format!("f{i}"),
            nodes: vec![node(&format!("f{}", i + 1)); 10],
        };
        let bytes = file(|f| {
            f.functions = (0..10).map(function).collect();
            f.graph.as_mut().unwrap().nodes = vec![node("f0")];
        });
        refused(&bytes, "functions");
        let bytes = file(|f| f.functions = vec![function(5)]);
        assert!(Header::read(&bytes).is_ok());
    }

    #[test]
    fn weights_elsewhere_are_listed() {
        let elsewhere = |key: &str| Tensor {
            place: 1,
            external: vec![Entry { key: key.into(), value: "m.data".into() }],
            ..tensor(&[1 << 30], 0)
        };
        let header = Header::read(&graph(|g| g.weights = vec![elsewhere("location")])).unwrap();
        let expected = External { location: "m.data".into(), values: 1 << 30 };
        assert_eq!(header.external, [expected]);
        refused(&graph(|g| g.weights = vec![elsewhere("length")]), "without a name");
    }

    #[test]
    fn damage_is_refused() {
        let bytes = file(|_| {});
        for cut in 1..bytes.len() - 1 {
            let _read_or_not = Header::read(&bytes[..cut]);
        }
        refused(&bytes[..bytes.len() / 2], "ends early");
        refused(b"", "no graph");
        refused(b"\x89PNG\r\n\x1a\n", "no ONNX file");
    }
}
