"""Loads exported weights into torchvision's (and timm's) ResNet18 and compares with our vectors.

torchvision_agrees.py SAFETENSORS FOLDER JSONL [TIMM_FOLDER]
"""
import json
import sys

import numpy as np
import safetensors
import safetensors.torch
import torch
import torchvision
from PIL import Image

path, folder, jsonl = sys.argv[1:4]
with safetensors.safe_open(path, "pt") as file:
    notes = file.metadata()
mean, std = (np.array(json.loads(notes[k]), dtype=np.float32) for k in ("mean", "std"))
with open(jsonl) as file:
    rows = [json.loads(line) for line in file]
pictures = [Image.open(f"{folder}/{row['path']}").convert("RGB") for row in rows]
pixels = np.stack([(np.asarray(p, dtype=np.float32) / 255 - mean) / std for p in pictures])
pixels = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()).float()
ours = np.array([row["vector"] for row in rows], dtype=np.float32)


def compare(name, model, weights):
    # The form for small pictures: a 3×3 stem and no first pooling.
    model.conv1 = torch.nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = torch.nn.Identity()
    model.load_state_dict(safetensors.torch.load_file(weights), strict=True)
    model.eval()
    with torch.no_grad():
        theirs = torch.nn.functional.normalize(model(pixels)).numpy()
    worst = float(np.abs(theirs - ours).max())
    assert worst < 1e-4, (name, worst)
    print(f"{name}: largest difference {worst:.2e} over {len(rows)} pictures")


features = int(notes["features"])
compare("torchvision", torchvision.models.resnet18(num_classes=features), path)
if len(sys.argv) > 4:
    try:
        import timm
    except ImportError:
        print("skipped: timm is not installed")
        sys.exit()
    config = json.load(open(f"{sys.argv[4]}/config.json"))
    model = timm.create_model(config["architecture"], num_classes=config["num_classes"])
    compare("timm", model, f"{sys.argv[4]}/model.safetensors")
