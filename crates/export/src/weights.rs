//! Weights as PyTorch loads them: a safetensors file with torchvision's names, and what timm wants
//! to know beside it.

use std::collections::HashMap;

use anchorhood_train::{InputForm, Tensor};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::json;

use crate::ExportError;

/// Names and values, for metadata: a picture's centre as a square, resized, RGB,
/// `(value / 255 − mean) / std`.
pub(crate) fn fields(preprocessing: &InputForm) -> Vec<(&'static str, String)> {
    let list = |v: [f32; 3]| json!(v).to_string();
    vec![
        ("input_size", preprocessing.size.to_string()),
        ("mean", list(preprocessing.mean)),
        ("std", list(preprocessing.std)),
        ("colour_order", "RGB".into()),
        (
            "preprocessing",
            format!(
                "cut the centre square, the shorter side whole; resize it to {0}x{0} (bilinear, \
                 antialiased); divide by 255; subtract mean, divide by std of each channel",
                preprocessing.size
            ),
        ),
    ]
}

/// The bytes of a safetensors file that `model.load_state_dict(safetensors.torch.load_file(…))`
/// takes, strictly: with the counters of batches that PyTorch's norms have. `notes` go into its
/// metadata.
pub(crate) fn torchvision_weights(
    tensors: &[Tensor],
    preprocessing: &InputForm,
    notes: &[(&str, String)],
) -> Result<Vec<u8>, ExportError> {
    let counters: Vec<String> = tensors
        .iter()
        .filter_map(|t| t.name.strip_suffix(".running_var"))
        .map(|norm| format!("{norm}.num_batches_tracked"))
        .collect();
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|t| t.values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let view = |dtype, shape, data| {
        let view = TensorView::new(dtype, shape, data);
        view.map_err(|e| ExportError::NotThere(format!("a tensor has not its shape: {e}")))
    };
    let mut views = vec![];
    for (tensor, data) in tensors.iter().zip(&bytes) {
        views.push((&tensor.name, view(Dtype::F32, tensor.shape.to_vec(), data)?));
    }
    for name in &counters {
        views.push((name, view(Dtype::I64, vec![], &[0; 8])?));
    }
    let fields = fields(preprocessing).into_iter();
    let notes = notes.iter().map(|(k, v)| (*k, v.clone()));
    let metadata: HashMap<String, String> = [("format", "pt".into())]
        .into_iter()
        .chain(fields)
        .chain(notes)
        .map(|(k, v)| (k.to_string(), v))
        .collect();
    let encoded = safetensors::serialize(views, Some(metadata));
    encoded.map_err(|e| ExportError::NotThere(format!("the weights cannot be encoded: {e}")))
}

/// What timm wants to know beside them.
pub(crate) fn timm_config(
    architecture: &str,
    tensors: &[Tensor],
    preprocessing: &InputForm,
) -> Result<String, ExportError> {
    let shape = |name: &str| tensors.iter().find(|t| t.name == name).map(|t| &t.shape);
    let (Some(conv1), Some(last)) = (shape("conv1.weight"), tensors.last()) else {
        return Err(no_timm(architecture));
    };
    // Without a last layer the features are the last norm's channels, and timm's `num_classes` is
    // 0.
    let (classes, features) = match shape("fc.weight") {
        Some(fc) => (fc[0], fc[1]),
        None => (0, last.shape[0]),
    };
    if !architecture.starts_with("resnet") || architecture == "resnet10" {
        return Err(no_timm(architecture));
    }
    if conv1[0] != 64 {
        return Err(ExportError::NotThere(format!(
            "timm's {architecture} has 64 channels after its stem, and this one {}",
            conv1[0]
        )));
    }
    let size = preprocessing.size;
    let config = json!({
        "architecture": architecture,
        "num_classes": classes,
        "num_features": features,
        "pretrained_cfg": {
            "num_classes": classes,
            "input_size": [3, size, size],
            "pool_size": null,
            "crop_pct": 1.0,
            "interpolation": "bilinear",
            "mean": preprocessing.mean,
            "std": preprocessing.std,
            "first_conv": "conv1",
            "classifier": "fc",
        },
    });
    Ok(format!("{config:#}\n"))
}

fn no_timm(architecture: &str) -> ExportError {
    ExportError::NotThere(format!("timm has no {architecture} like this one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::SafeTensors;

    const FORM: InputForm =
        InputForm { version: InputForm::VERSION, size: 32, mean: [0.5; 3], std: [0.25; 3] };

    fn tensor(name: &str, shape: &[usize], values: &[f32]) -> Tensor {
        Tensor { name: name.into(), shape: shape.into(), values: values.into() }
    }

    #[test]
    fn norms_get_their_counters() {
        let tensors =
            [tensor("conv1.weight", &[1, 2], &[1.0, 2.0]), tensor("bn1.running_var", &[1], &[3.0])];
        let bytes = torchvision_weights(&tensors, &FORM, &[("network", "x".into())]).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let counter = file.tensor("bn1.num_batches_tracked").unwrap();
        assert_eq!((counter.dtype(), counter.shape()), (Dtype::I64, &[][..]));
        assert_eq!(file.tensor("conv1.weight").unwrap().shape(), [1, 2]);
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let metadata = header.metadata().clone().unwrap();
        assert_eq!(metadata["format"], "pt");
        assert_eq!(metadata["mean"], "[0.5,0.5,0.5]");
        assert_eq!(metadata["network"], "x");
    }

    #[test]
    fn what_timm_has_not_is_said() {
        let config = |architecture, width| {
            let conv1 = tensor("conv1.weight", &[width, 3, 3, 3], &[]);
            let tensors = [conv1, tensor("fc.weight", &[128, 512], &[])];
            timm_config(architecture, &tensors, &FORM).map_err(|e| e.to_string())
        };
        assert!(config("resnet18", 64).unwrap().contains("\"num_classes\": 128"));
        assert!(config("resnet18", 16).unwrap_err().contains("64 channels"));
        for other in ["alexnet", "resnet10"] {
            let error = config(other, 64).unwrap_err();
            assert!(error.contains(&format!("no {other}")), "{error}");
        }
    }
}
