"""Writes an index of format version 1 as crates/search/src/index/format.rs documents it, independently of the program.

Run once; later versions of the program must go on reading the file: tools/golden/index.py
"""
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

names = ["cat/1.png", "dog/ü.png", "loose.jpg"]
raw = [n.encode() for n in names]
thumbnails = [b"first", b"", b"third"]
ends = lambda pieces: np.cumsum([len(p) for p in pieces]).astype(np.uint64)
join = lambda pieces: np.frombuffer(b"".join(pieces), dtype=np.uint8).copy()
tensors = {
    "vectors": np.array([[1, 0], [0.6, 0.8], [0, -1]], dtype=np.float32),
    "names": join(raw),
    "name_ends": ends(raw),
    "classes": np.array([0, 1, 0xFFFFFFFF], dtype=np.uint32),
    "thumbnails": join(thumbnails),
    "thumbnail_ends": ends(thumbnails),
    "centres": np.array([[1, 0], [0, -1]], dtype=np.float32),
    "list_starts": np.array([0, 2, 3], dtype=np.uint32),
    "list_members": np.array([0, 1, 2], dtype=np.uint32),
}
metadata = {
    "format": "anchorhood-index",
    "version": "1",
    "model": "00112233445566778899aabbccddeeff",
    "layer": "conv5",
    "folder": "/pictures",
    "classes": json.dumps(["cat", "dog"]),
    "recall": "0.975",
}
place = Path(__file__).parents[2] / "crates/search/tests/golden/version-1.index"
save_file(tensors, place, metadata)
