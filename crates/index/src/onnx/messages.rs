//! The parts of ONNX's protobuf format that a network needs, field by field as in `onnx.proto` (IR
//! version 8): what is written of one, and what is read of others' before they are trusted. Names
//! and numbers are the standard's: <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>.

#![allow(missing_docs)]

use anchorhood_storage::protobuf;

/// `TensorProto.DataType.FLOAT`.
pub const FLOAT: i32 = 1;
/// `TensorProto.DataType.INT64`.
const INT64: i32 = 7;

protobuf! {
    /// A whole file.
    pub struct ModelProto {
        pub ir_version: i64 = 1,
        pub producer_name: String = 2,
        pub producer_version: String = 3,
        pub doc_string: String = 6,
        pub graph: Option<GraphProto> = 7,
        pub opset_import: Vec<OperatorSetIdProto> = 8,
        pub metadata_props: Vec<StringStringEntryProto> = 14,
        pub functions: Vec<FunctionProto> = 25,
    }

    pub struct FunctionProto {
        pub name: String = 1,
        pub node: Vec<NodeProto> = 7,
    }

    pub struct OperatorSetIdProto {
        pub domain: String = 1,
        pub version: i64 = 2,
    }

    pub struct StringStringEntryProto {
        pub key: String = 1,
        pub value: String = 2,
    }

    pub struct GraphProto {
        pub node: Vec<NodeProto> = 1,
        pub name: String = 2,
        pub initializer: Vec<TensorProto> = 5,
        pub input: Vec<ValueInfoProto> = 11,
        pub output: Vec<ValueInfoProto> = 12,
    }

    pub struct NodeProto {
        pub input: Vec<String> = 1,
        pub output: Vec<String> = 2,
        pub name: String = 3,
        pub op_type: String = 4,
        pub attribute: Vec<AttributeProto> = 5,
    }

    /// Proto2 fields are written where they are set, whatever their value: an attribute of 0 is not
    /// an absent one.
    pub struct AttributeProto {
        pub name: String = 1,
        pub f: Option<f32> = 2,
        pub i: Option<i64> = 3,
        pub t: Option<TensorProto> = 5,
        pub g: Option<GraphProto> = 6,
        pub ints: Vec<i64> = 8,
        pub r#type: i32 = 20,
    }

    pub struct TensorProto {
        pub dims: Vec<i64> = 1,
        pub data_type: i32 = 2,
        pub name: String = 8,
        pub raw_data: Vec<u8> = 9,
        pub external_data: Vec<StringStringEntryProto> = 13,
        pub data_location: i32 = 14,
    }

    pub struct ValueInfoProto {
        pub name: String = 1,
        pub r#type: Option<TypeProto> = 2,
    }

    pub struct TypeProto {
        pub tensor_type: Option<TensorTypeProto> = 1,
    }

    pub struct TensorTypeProto {
        pub elem_type: i32 = 1,
        pub shape: Option<TensorShapeProto> = 2,
    }

    pub struct TensorShapeProto {
        pub dim: Vec<Dimension> = 1,
    }

    pub struct Dimension {
        pub dim_value: Option<i64> = 1,
        pub dim_param: Option<String> = 2,
    }
}

impl AttributeProto {
    pub fn float(name: &str, value: f32) -> Self {
        AttributeProto { name: name.into(), f: Some(value), r#type: 1, ..AttributeProto::default() }
    }

    pub fn int(name: &str, value: i64) -> Self {
        AttributeProto { name: name.into(), i: Some(value), r#type: 2, ..AttributeProto::default() }
    }

    pub fn ints(name: &str, values: impl IntoIterator<Item = usize>) -> Self {
        AttributeProto {
            name: name.into(),
            ints: values.into_iter().map(|v| v as i64).collect(),
            r#type: 7,
            ..AttributeProto::default()
        }
    }
}

impl TensorProto {
    pub fn floats(name: &str, shape: &[usize], values: &[f32]) -> Self {
        TensorProto {
            dims: shape.iter().map(|d| *d as i64).collect(),
            data_type: FLOAT,
            name: name.into(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..TensorProto::default()
        }
    }

    pub fn integers(name: &str, values: &[i64]) -> Self {
        TensorProto {
            dims: vec![values.len() as i64],
            data_type: INT64,
            name: name.into(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..TensorProto::default()
        }
    }
}

impl ValueInfoProto {
    /// Floats with any number of rows, called `batch`, and these dimensions after it.
    pub fn batch_of(name: &str, dims: &[usize]) -> Self {
        let batch = Dimension { dim_value: None, dim_param: Some("batch".into()) };
        let fixed = dims.iter().map(|d| Dimension { dim_value: Some(*d as i64), dim_param: None });
        let shape = TensorShapeProto { dim: std::iter::once(batch).chain(fixed).collect() };
        ValueInfoProto {
            name: name.into(),
            r#type: Some(TypeProto {
                tensor_type: Some(TensorTypeProto { elem_type: FLOAT, shape: Some(shape) }),
            }),
        }
    }
}
