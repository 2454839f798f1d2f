#!/usr/bin/env python3
"""Write crates/data/tests/golden/resize.json: what Pillow makes of small images by the rules of torchvision's transforms.

usage: resize.py            (needs: pip install pillow numpy)

Each case holds an image (HWC bytes), how it is resized and by which filter, and the square that comes out. The rules are
those of torchvision.transforms.functional for PIL images: Resize(n) makes the shorter side n and the longer one
int(n * long / short); CenterCrop begins at int(round((length - size) / 2.0)). Read by crates/data/tests/it/resize_golden.rs.
"""
import json, os
import numpy as np
from PIL import Image

FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/data/tests/golden/resize.json")


def image(rng, h, w, kind):
    if kind == "noise":
        return rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    y, x = np.mgrid[0:h, 0:w]
    smooth = np.stack([x * 255 // max(w - 1, 1), y * 255 // max(h - 1, 1), (x + y) * 3 % 256], -1)
    edge = np.where((x // 7 + y // 5) % 2 == 0, 30, 0)[..., None]  # edges, where cubics overshoot
    return np.clip(smooth * 200 // 255 + edge, 0, 255).astype(np.uint8)


def resized(picture, mode, side):
    w, h = picture.size
    if mode == "both":
        return side, side
    short, long = min(w, h), max(w, h)
    new = int(side * long / short)
    return (side, new) if w <= h else (new, side)


def square(pixels, mode, side, size, name):
    picture = Image.fromarray(pixels)
    if mode == "square":  # the centre square first, as a box of the resize itself
        w, h = picture.size
        s = min(w, h)
        left, top = (w - s) / 2, (h - s) / 2
        picture = picture.resize((size, size), FILTERS[name], box=(left, top, left + s, top + s))
        return np.asarray(picture)
    to = resized(picture, mode, side)
    picture = picture.resize(to, FILTERS[name])
    left, top = (int(round((length - size) / 2.0)) for length in to)
    return np.asarray(picture.crop((left, top, left + size, top + size)))


def main():
    rng = np.random.default_rng(3)
    cases = []
    for name in FILTERS:
        for kind in ["smooth", "noise"]:
            for (h, w), mode, side, size in [
                ((26, 41), "shorter", 12, 10),
                ((31, 20), "shorter", 13, 10),  # an odd border: 1.5 pixels
                ((17, 29), "shorter", 10, 10),
                ((7, 11), "shorter", 14, 12),  # enlarged
                ((10, 19), "shorter", 10, 10),  # rows as they are
                ((25, 16), "both", 10, 10),
                ((16, 25), "both", 13, 10),
                ((22, 23), "square", 0, 9),
                ((15, 24), "square", 0, 8),
            ]:
                pixels = image(rng, h, w, kind)
                out = square(pixels, mode, side, size, name)
                cases.append(dict(h=h, w=w, mode=mode, side=side, size=size, filter=name,
                                  image=pixels.flatten().tolist(), expected=out.flatten().tolist()))
    with open(OUT, "w") as file:
        json.dump(dict(cases=cases), file, separators=(",", ":"))
        file.write("\n")
    print(len(cases), "cases", os.path.getsize(OUT), "bytes")


main()
