"""A large folder of small pictures to measure with: many_pictures.py CIFAR10_BIN OUT [COUNT=100000].

CIFAR-10's 60,000 pictures as PNG files, a thousand in a folder, then the same mirrored, until there are COUNT.
"""

import pathlib
import sys

import numpy as np
from PIL import Image

source, out = map(pathlib.Path, sys.argv[1:3])
count = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
files = [*sorted(source.glob("data_batch_*.bin")), source / "test_batch.bin"]
raw = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, 3073) for f in files])
pictures = raw[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
for i in range(count):
    picture = pictures[i % len(pictures)]
    if i >= len(pictures):
        picture = picture[:, ::-1]
    folder = out / f"{i // 1000:03}"
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(picture)).save(folder / f"{i:06}.png")
