//! A network as ONNX: pictures N×3×H×W in floats, any N; out comes a vector of unit length for
//! each.
//!
//! Every layer becomes the operators it is made of, under torchvision's names for its weights;
//! batch norms stay what they are, for runtimes fold them themselves. What must be done to a
//! picture first stands in the file's metadata.

mod colour;

use anchorhood_engine::{Activation, Graph, Node, NodeId, Norm, Op, Window};
use anchorhood_index::onnx::messages::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, ValueInfoProto,
};
use anchorhood_storage::protobuf::Message;
use anchorhood_train::{InputForm, Tensor};

use crate::ExportError;
use crate::weights::fields;

/// The version of ONNX's operators that is used: of 2022, which every runtime in use has.
pub const OPSET: i64 = 17;
/// The version of the format that goes with it.
const IR_VERSION: i64 = 8;
const INPUT: &str = "pixels";
const OUTPUT: &str = "embedding";
/// The least length a vector is divided by, as in the engine.
const LEAST_NORM: f32 = 1e-12;

/// The bytes of an ONNX file. `tensors` are the graph's parameters, in its order; `notes` go into
/// its metadata.
pub(crate) fn onnx_model(
    graph: &Graph,
    tensors: &[Tensor],
    preprocessing: &InputForm,
    version: &str,
    notes: &[(&str, String)],
) -> Result<Vec<u8>, ExportError> {
    let mut writer = Writer { graph, tensors, nodes: vec![], initializers: vec![], values: vec![] };
    for node in graph.nodes() {
        let value = writer.layer(node)?;
        writer.values.push(value);
    }
    let result = &writer.values[graph.output_node().index()];
    let (last, flat) = (result.name.clone(), result.flat);
    if !flat {
        let name = &graph.node(graph.output_node()).name;
        return Err(refused(name, "the result is not a vector for each picture"));
    }
    writer.node("Identity", OUTPUT, &[last], vec![]);
    let dim = graph.shape(graph.output_node()).len();
    let size = preprocessing.size;
    let fields = fields(preprocessing).into_iter();
    let layout = ("layout", "NCHW, float32".to_string());
    let notes = notes.iter().map(|(k, v)| (*k, v.clone()));
    let model = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "anchorhood".into(),
        producer_version: version.into(),
        doc_string: "Image features learnt without labels by Anchor Neighbourhood Discovery; \
                     similarity of two pictures is the product of their vectors."
            .into(),
        graph: Some(GraphProto {
            name: "anchorhood".into(),
            node: writer.nodes,
            initializer: writer.initializers,
            input: vec![ValueInfoProto::batch_of(INPUT, &[3, size, size])],
            output: vec![ValueInfoProto::batch_of(OUTPUT, &[dim])],
        }),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        metadata_props: fields
            .chain([layout])
            .chain(notes)
            .map(|(key, value)| StringStringEntryProto { key: key.into(), value })
            .collect(),
        ..ModelProto::default()
    };
    Ok(model.encode())
}

/// A layer's result in the ONNX graph.
#[derive(Clone)]
struct Value {
    name: String,
    /// N×C, no places.
    flat: bool,
}

struct Writer<'a> {
    graph: &'a Graph,
    tensors: &'a [Tensor],
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
    values: Vec<Value>,
}

impl Writer<'_> {
    fn layer(&mut self, node: &Node) -> Result<Value, ExportError> {
        let name = node.name.as_str();
        let x = node.inputs.first().map(|id| self.value(*id));
        let Some(x) = x else {
            return Ok(Value { name: INPUT.into(), flat: false });
        };
        let places = |name: String| Value { name, flat: false };
        let same = |name: String| Value { name, flat: x.flat };
        Ok(match node.op {
            Op::Input => x.clone(),
            Op::Conv { spec, norm, relu } => {
                if x.flat {
                    return Err(refused(
                        name,
                        "it comes after a layer that has no places any more",
                    ));
                }
                let mut parameters = node.parameters.clone();
                let norms = parameters.split_off(1 + usize::from(spec.bias));
                let mut inputs = vec![x.name.clone()];
                inputs.extend(parameters.iter().map(|p| self.parameter(*p)));
                let mut y = self.node("Conv", name, &inputs, window(&spec.window));
                if let Some(norm) = norm {
                    y = self.batch_norm(&format!("{name}/norm"), y, &norms, norm);
                }
                if let Some(residual) = node.inputs.get(1) {
                    let residual = self.value(*residual).name;
                    y = self.node("Add", &format!("{name}/add"), &[y, residual], vec![]);
                }
                if relu {
                    y = self.node("Relu", &format!("{name}/relu"), &[y], vec![]);
                }
                places(y)
            }
            Op::BatchNorm(norm) => same(self.batch_norm(name, x.name, &node.parameters, norm)),
            Op::Relu => same(self.node("Relu", name, &[x.name], vec![])),
            Op::Activation(Activation::LeakyRelu(leak)) => {
                let leak = vec![AttributeProto::float("alpha", leak)];
                same(self.node("LeakyRelu", name, &[x.name], leak))
            }
            Op::Activation(Activation::Tanh) => same(self.node("Tanh", name, &[x.name], vec![])),
            Op::Add => {
                let other = self.value(node.inputs[1]).name;
                same(self.node("Add", name, &[x.name, other], vec![]))
            }
            Op::MaxPool(w) => places(self.node("MaxPool", name, &[x.name], window(&w))),
            Op::GlobalAvgPool => places(self.node("GlobalAveragePool", name, &[x.name], vec![])),
            Op::Upsample => places(self.upsample(name, x.name)),
            Op::Linear { .. } => {
                let mut inputs = vec![self.flat(node, x)?];
                inputs.extend(node.parameters.iter().map(|p| self.parameter(*p)));
                let attributes = vec![AttributeProto::int("transB", 1)];
                Value { name: self.node("Gemm", name, &inputs, attributes), flat: true }
            }
            // In use it does nothing.
            Op::Dropout(_) => x,
            Op::L2Normalise => {
                let x = self.flat(node, x)?;
                Value { name: self.unit_length(name, x), flat: true }
            }
            Op::Channels { first } => {
                let channels = [self.graph.shape(node.inputs[0]), node.shape].map(|s| s.channels);
                same(self.channels(name, x.name, channels, first, x.flat))
            }
            Op::Lab => places(self.lab(name, x.name, &node.parameters)),
        })
    }

    fn value(&self, id: NodeId) -> Value {
        self.values[id.index()].clone()
    }

    /// Adds an operator; its output is called as it is.
    fn node(
        &mut self,
        op: &str,
        name: &str,
        inputs: &[String],
        attribute: Vec<AttributeProto>,
    ) -> String {
        self.nodes.push(NodeProto {
            input: inputs.into(),
            output: vec![name.into()],
            name: name.into(),
            op_type: op.into(),
            attribute,
        });
        name.into()
    }

    fn parameter(&mut self, index: usize) -> String {
        let Tensor { name, shape, values } = &self.tensors[index];
        self.floats(name, shape, values)
    }

    /// Adds a constant, under its name.
    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        self.initializers.push(TensorProto::floats(name, shape, values));
        name.into()
    }

    fn integers(&mut self, name: &str, values: &[i64]) -> String {
        self.initializers.push(TensorProto::integers(name, values));
        name.into()
    }

    fn batch_norm(&mut self, name: &str, x: String, parameters: &[usize], norm: Norm) -> String {
        let mut inputs = vec![x];
        inputs.extend(parameters.iter().map(|p| self.parameter(*p)));
        let attributes = vec![AttributeProto::float("epsilon", norm.epsilon)];
        self.node("BatchNormalization", name, &inputs, attributes)
    }

    /// N×C from N×C×1×1. Over more places the orders of values would differ.
    fn flat(&mut self, node: &Node, x: Value) -> Result<String, ExportError> {
        if x.flat {
            return Ok(x.name);
        }
        if self.graph.shape(node.inputs[0]).pixels() != 1 {
            return Err(refused(&node.name, "it takes a vector, and is given more than one place"));
        }
        let name = format!("{}/flat", node.name);
        Ok(self.node("Flatten", &name, &[x.name], vec![]))
    }

    /// Those of the input's channels that are wanted, between zeros where there are none.
    fn channels(
        &mut self,
        name: &str,
        x: String,
        [from, to]: [usize; 2],
        first: isize,
        flat: bool,
    ) -> String {
        let part = |p: &str| format!("{name}/{p}");
        let (first, from, to) = (first as i64, from as i64, to as i64);
        let (begin, end) = (first.max(0), (first + to).min(from));
        let [begin_at, end_at, axis] = [("begin", begin), ("end", end), ("axis", 1)]
            .map(|(of, value)| self.integers(&part(of), &[value]));
        let inputs = [x, begin_at, end_at, axis];
        let there = self.node("Slice", &part("there"), &inputs, vec![]);
        let (before, after) = (begin - first, first + to - end);
        // How many zeros before each dimension, then after each.
        let pads = match flat {
            true => vec![0, before, 0, after],
            false => vec![0, before, 0, 0, 0, after, 0, 0],
        };
        let zeros = self.integers(&part("zeros"), &pads);
        self.node("Pad", name, &[there, zeros], vec![])
    }

    /// Each place four times. Unless told otherwise, the nearest place is meant, and of it all (an
    /// empty region).
    fn upsample(&mut self, name: &str, x: String) -> String {
        let region = self.floats(&format!("{name}/region"), &[0], &[]);
        let factors = self.floats(&format!("{name}/factors"), &[4], &[1.0, 1.0, 2.0, 2.0]);
        self.node("Resize", name, &[x, region, factors], vec![])
    }

    /// x / max(‖x‖, 1e-12).
    fn unit_length(&mut self, name: &str, x: String) -> String {
        let part = |p: &str| format!("{name}/{p}");
        let least = self.floats(&part("least"), &[], &[LEAST_NORM]);
        let axes = vec![AttributeProto::ints("axes", [1]), AttributeProto::int("keepdims", 1)];
        let length = self.node("ReduceL2", &part("length"), std::slice::from_ref(&x), axes);
        let length = self.node("Max", &part("length_or_least"), &[length, least], vec![]);
        self.node("Div", name, &[x, length], vec![])
    }
}

fn refused(layer: &str, why: &str) -> ExportError {
    ExportError::Failed(format!("{layer}: {why}, which cannot be exported"))
}

fn window(w: &Window) -> Vec<AttributeProto> {
    let [top, left] = w.padding;
    vec![
        AttributeProto::ints("kernel_shape", w.kernel),
        AttributeProto::ints("strides", w.stride),
        AttributeProto::ints("pads", [top, left, top, left]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use anchorhood_engine::ConvSpec;

    const FORM: InputForm =
        InputForm { version: InputForm::VERSION, size: 8, mean: [0.5; 3], std: [0.25; 3] };

    /// Every kind of layer.
    fn graph() -> Graph {
        let mut g = Graph::new();
        let x = g.input(8, 8, 3);
        let x = g.lab("lab", x).unwrap();
        let c = g.conv("conv1", x, ConvSpec::square(4, 3, 1, 1).with_bias()).unwrap();
        let b = g.batch_norm("bn1", c).unwrap();
        let r = g.relu("relu1", b).unwrap();
        let p = g.max_pool("pool1", r, Window::square(3, 2, 1)).unwrap();
        let spec = ConvSpec::square(4, 1, 1, 0);
        let y = g.conv_norm("conv2", "bn2", p, spec, true, Some(p)).unwrap();
        let a = g.add("add", y, p).unwrap();
        let a = (g.activation("leaky", a, Activation::LeakyRelu(0.2))).unwrap();
        let a = g.activation("tanh", a, Activation::Tanh).unwrap();
        let a = g.upsample("up", a).unwrap();
        let d = g.dropout("drop", a, 0.5).unwrap();
        let d = g.channels("channels", d, -1, 4).unwrap();
        let v = g.global_avg_pool("avgpool", d).unwrap();
        let f = g.linear("fc", v, 5, true).unwrap();
        let n = g.l2_normalise("normalise", f).unwrap();
        g.output(n);
        g
    }

    fn model(graph: &Graph) -> Result<ModelProto, ExportError> {
        let tensors = graph.parameters().iter().map(|p| Tensor {
            name: p.name.clone(),
            shape: p.shape.clone(),
            values: vec![0.5; p.len()],
        });
        let tensors: Vec<Tensor> = tensors.collect();
        let bytes = onnx_model(graph, &tensors, &FORM, "0", &[("network", "x".into())])?;
        Ok(ModelProto::decode(&bytes).unwrap())
    }

    /// What onnxruntime makes of it is tested with the program; here, that the graph hangs
    /// together.
    #[test]
    fn every_input_was_made_before() {
        let model = model(&graph()).unwrap();
        let graph = model.graph.unwrap();
        let mut known: Vec<&str> = vec![INPUT];
        known.extend(graph.initializer.iter().map(|t| t.name.as_str()));
        for node in &graph.node {
            for input in &node.input {
                assert!(known.contains(&input.as_str()), "{}: {input}", node.name);
            }
            assert!(!known.contains(&node.output[0].as_str()), "{}", node.name);
            known.push(&node.output[0]);
        }
        assert!(known.contains(&OUTPUT));
        let ops: Vec<&str> = graph.node.iter().map(|n| n.op_type.as_str()).collect();
        // After the colours.
        let conv1 = graph.node.iter().position(|n| n.name == "conv1").unwrap();
        let expected = "Conv BatchNormalization Relu MaxPool Conv BatchNormalization Add Relu Add \
                        LeakyRelu Tanh Resize Slice Pad GlobalAveragePool Flatten Gemm ReduceL2 \
                        Max Div Identity";
        assert_eq!(ops[conv1..].join(" "), expected);
        let noted = |key: &&str| model.metadata_props.iter().any(|p| p.key == *key);
        let keys = ["mean", "std", "input_size", "colour_order", "network"];
        assert!(keys.iter().all(noted));
    }

    #[test]
    fn a_result_with_places_is_refused() {
        let mut g = Graph::new();
        let x = g.input(8, 8, 3);
        let c = g.conv("conv1", x, ConvSpec::square(4, 3, 1, 1)).unwrap();
        g.output(c);
        let error = model(&g).unwrap_err().to_string();
        assert!(error.starts_with("conv1: the result is not a vector"), "{error}");
        let n = g.l2_normalise("normalise", c).unwrap();
        g.output(n);
        assert!(model(&g).unwrap_err().to_string().contains("more than one place"));
    }
}
