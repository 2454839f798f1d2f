//! What does an ONNX file take and give? Read by ourselves, from its bytes, before any other
//! program sees them.
//!
//! A file that somebody wrote to harm is refused here where it could make its reader do more than
//! its size warrants: weights that are not in it, graphs within graphs without end, functions of
//! functions, loops. Fields are named and numbered as in `onnx.proto`.

use std::collections::BTreeSet;

use anchorhood_storage::protobuf::{Message, Wire, fields};
use anchorhood_storage::{protobuf, read_varint};

use crate::onnx::functions::Calls;
use crate::onnx::messages::{Dimension, StringStringEntryProto, ValueInfoProto};
use crate::onnx::plain::plain;

/// Graphs within graphs (the branches of a condition), at most.
const DEEPEST: usize = 8;
/// Weights take at least so much of a byte each, in any of ONNX's types: two bits.
const VALUES_IN_A_BYTE: u64 = 4;

/// What goes in or comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its name, as it may be shown.
    pub name: String,
    /// `TensorProto.DataType`: 1 is 32-bit floats; 0 where it is no tensor.
    pub element: i32,
    /// Its dimensions, where they are told; none for one of which there may be any number.
    pub shape: Option<Vec<Option<usize>>>,
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

// Of a node and of a function, what is read before what lies in them.
protobuf! {
    struct OpType {
        op: String = 4,
        domain: String = 7,
    }
    struct FunctionName {
        name: String = 1,
        domain: String = 10,
    }
}

impl From<ValueInfoProto> for Value {
    fn from(info: ValueInfoProto) -> Value {
        let tensor = info.r#type.and_then(|t| t.tensor_type);
        // Some exporters write 0 or −1 for a dimension that is not known.
        let known = |n: i64| usize::try_from(n).ok().filter(|n| *n > 0);
        let dimension = |dim: &Dimension| dim.dim_value.and_then(known);
        let shape = tensor.as_ref().and_then(|t| t.shape.as_ref());
        Value {
            name: plain(&info.name),
            element: tensor.as_ref().map_or(0, |t| t.elem_type),
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
                let entry: StringStringEntryProto = whole(value)?;
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
                self.header.inputs.push(whole::<ValueInfoProto>(value)?.into());
                Ok(())
            }
            12 if depth == 0 => {
                self.header.outputs.push(whole::<ValueInfoProto>(value)?.into());
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
                    let entry: StringStringEntryProto = whole(value)?;
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

    use crate::onnx::messages::{
        AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto,
        TensorShapeProto, TensorTypeProto, TypeProto,
    };

    fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
        let dim = |value: &i64| Dimension { dim_value: Some(*value), dim_param: None };
        let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
        let tensor_type = Some(TensorTypeProto { elem_type: 1, shape });
        ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
    }

    fn tensor(dims: &[i64], bytes: usize) -> TensorProto {
        let raw_data = vec![0; bytes];
        TensorProto { dims: dims.into(), name: "w".into(), raw_data, ..TensorProto::default() }
    }

    fn node(op: &str) -> NodeProto {
        NodeProto { op_type: op.into(), ..NodeProto::default() }
    }

    fn file(change: impl FnOnce(&mut ModelProto)) -> Vec<u8> {
        let mut file = ModelProto {
            graph: Some(GraphProto {
                node: vec![node("Conv")],
                name: "main".into(),
                initializer: vec![tensor(&[8, 3], 96)],
                input: vec![value("x", &[-1, 3, 32, 32]), value("w", &[8, 3])],
                output: vec![value("y", &[0, 8])],
            }),
            metadata_props: vec![StringStringEntryProto { key: "a".into(), value: "b".into() }],
            ..ModelProto::default()
        };
        change(&mut file);
        file.encode()
    }

    fn graph(change: impl FnOnce(&mut GraphProto)) -> Vec<u8> {
        file(|file| change(file.graph.as_mut().unwrap()))
    }

    #[test]
    fn inputs_outputs_and_notes_are_read() {
        let header = Header::read(&file(|_| {})).unwrap();
        assert_eq!(header.name, "main");
        assert_eq!(header.metadata, [("a".to_string(), "b".to_string())]);
        let [x] = &header.inputs[..] else { panic!("weights are no input: {:?}", header.inputs) };
        let shape = vec![None, Some(3), Some(32), Some(32)];
        assert_eq!((x.name.as_str(), x.element, &x.shape), ("x", 1, &Some(shape)));
        assert_eq!(header.outputs[0].shape, Some(vec![None, Some(8)]));
    }

    #[track_caller]
    fn refused(bytes: &[u8], why: &str) {
        let said = Header::read(bytes).unwrap_err();
        assert!(said.contains(why), "{said:?} lacks {why:?}");
    }

    #[test]
    fn more_than_the_file_has_is_refused() {
        refused(&graph(|g| g.initializer = vec![tensor(&[1 << 40], 96)]), "claim");
        refused(&graph(|g| g.initializer = vec![tensor(&[-1], 96)]), "claim");
        let t = Some(tensor(&[1 << 20, 1 << 20], 4));
        let constant = AttributeProto { t, ..AttributeProto::default() };
        refused(&graph(|g| g.node[0].attribute = vec![constant]), "claim");
        refused(&graph(|g| g.node.push(node("Loop"))), "loop");
        refused(&graph(|g| g.output.clear()), "no graph");
    }

    #[test]
    fn graphs_within_graphs_have_an_end() {
        let mut graph = GraphProto::default();
        for _ in 0..20 {
            let branch = AttributeProto { g: Some(graph), ..AttributeProto::default() };
            let condition = NodeProto { attribute: vec![branch], ..node("If") };
            graph = GraphProto { node: vec![condition], ..GraphProto::default() };
        }
        refused(&file(|f| f.graph = Some(graph)), "within graphs");
    }

    /// Ten functions, each of ten calls of the next: ten thousand million nodes in less than a
    /// kilobyte.
    #[test]
    fn functions_of_functions_are_counted() {
        let function = |i: usize| FunctionProto {
            name: format!("f{i}"),
            node: vec![node(&format!("f{}", i + 1)); 10],
        };
        let bytes = file(|f| {
            f.functions = (0..10).map(function).collect();
            f.graph.as_mut().unwrap().node = vec![node("f0")];
        });
        refused(&bytes, "functions");
        let bytes = file(|f| f.functions = vec![function(5)]);
        assert!(Header::read(&bytes).is_ok());
    }

    #[test]
    fn weights_elsewhere_are_listed() {
        let elsewhere = |key: &str| TensorProto {
            data_location: 1,
            external_data: vec![StringStringEntryProto { key: key.into(), value: "m.data".into() }],
            ..tensor(&[1 << 30], 0)
        };
        let header = Header::read(&graph(|g| g.initializer = vec![elsewhere("location")])).unwrap();
        let expected = External { location: "m.data".into(), values: 1 << 30 };
        assert_eq!(header.external, [expected]);
        refused(&graph(|g| g.initializer = vec![elsewhere("length")]), "without a name");
    }

    #[test]
    fn damage_is_refused() {
        let bytes = file(|_| {});
        refused(&bytes[..bytes.len() / 2], "ends early");
        refused(b"", "no graph");
        refused(b"\x89PNG\r\n\x1a\n", "no ONNX file");
    }
}
