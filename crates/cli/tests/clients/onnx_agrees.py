"""Runs an exported model on a folder of PNG pictures of its size and compares with our vectors: onnx_agrees.py ONNX FOLDER JSONL."""
import json
import sys

import numpy as np
import onnx
import onnxruntime
from PIL import Image

path, folder, jsonl = sys.argv[1:4]
model = onnx.load(path)
onnx.checker.check_model(model, full_check=True)
assert [(o.domain, o.version) for o in model.opset_import] == [("", 17)]
notes = {p.key: p.value for p in model.metadata_props}
assert notes["colour_order"] == "RGB", notes
mean, std = (np.array(json.loads(notes[k]), dtype=np.float32) for k in ("mean", "std"))
size = int(notes["input_size"])

with open(jsonl) as file:
    rows = [json.loads(line) for line in file]
pixels = []
for row in rows:
    picture = Image.open(f"{folder}/{row['path']}").convert("RGB")
    assert picture.size == (size, size), picture.size
    pixels.append((np.asarray(picture, dtype=np.float32) / 255 - mean) / std)
pixels = np.stack(pixels).transpose(0, 3, 1, 2).astype(np.float32)
ours = np.array([row["vector"] for row in rows], dtype=np.float32)

session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
theirs = session.run(["embedding"], {"pixels": pixels})[0]
worst = float(np.abs(theirs - ours).max())
assert worst < 1e-4, worst
alone = session.run(["embedding"], {"pixels": pixels[:1]})[0]  # any number at a time
assert np.allclose(alone, theirs[:1], atol=1e-6)
assert float(np.abs(ours).max()) > 1e-3, "vectors of nothing agree with anything"
print(f"largest difference {worst:.2e} over {len(rows)} pictures")
