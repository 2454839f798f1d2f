#!/usr/bin/env python3
"""Write crates/data/tests/golden/augment.json: what torchvision makes of small pictures for fixed parameters.

usage: augment.py            (needs: pip install torch torchvision numpy)

Each case holds a picture (HWC bytes), the parameters, and the normalised result (HWC floats). Read by
crates/data/tests/it/augment_golden.rs.
"""
import itertools, json, os
import numpy as np
import torch
import torchvision
from torchvision.transforms import functional as F
from torchvision.transforms import InterpolationMode

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
ORDERS = list(itertools.permutations(range(4)))  # lexicographic, as AugmentParams::ORDERS
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/data/tests/golden/augment.json")


def picture(rng, h, w, kind):
    if kind == "noise":
        return rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
    if kind == "coarse":  # ties between channels, greys, black and white
        return (rng.integers(0, 3, (h, w, 3)) * 127).astype(np.uint8)
    y, x = np.mgrid[0:h, 0:w]
    return np.stack([x * 255 // max(w - 1, 1), y * 255 // max(h - 1, 1), (x + y) * 5 % 256], -1).astype(np.uint8)


def see(pixels, p):
    h, w, _ = pixels.shape
    x = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
    x = F.resized_crop(x, p["top"], p["left"], p["height"], p["width"], [h, w], InterpolationMode.BILINEAR, antialias=True)
    for op in ORDERS[p["order"]]:
        if op == 0:
            x = F.adjust_brightness(x, p["brightness"])
        elif op == 1:
            x = F.adjust_contrast(x, p["contrast"])
        elif op == 2:
            x = F.adjust_saturation(x, p["saturation"])
        else:
            x = F.adjust_hue(x, p["hue"])
    if p["grey"]:
        x = F.rgb_to_grayscale(x, 3)
    if p.get("blur"):
        x = F.gaussian_blur(x, 2 * max(min(h, w) // 20, 1) + 1, p["blur"])
    if p.get("solarise"):
        x = F.solarize(x, 0.5)
    if p["flip"]:
        x = F.hflip(x)
    return F.normalize(x, MEAN, STD).permute(1, 2, 0).flatten().tolist()


def plain(h, w, **changes):
    p = dict(top=0, left=0, height=h, width=w, brightness=1.0, contrast=1.0, saturation=1.0, hue=0.0, order=0, grey=0, flip=0)
    return p | changes


def main():
    rng = np.random.default_rng(2019)
    f = lambda low, high: float(np.float32(rng.uniform(low, high)))
    cases = []

    def add(kind, h, w, p):
        pixels = picture(rng, h, w, kind)
        cases.append(dict(h=h, w=w, picture=pixels.flatten().tolist(), **p, expected=[round(v, 7) for v in see(pixels, p)]))

    for kind in ("noise", "coarse"):
        add(kind, 8, 8, plain(8, 8, top=1, left=2, height=5, width=4))
        add(kind, 8, 8, plain(8, 8, brightness=1.375))
        add(kind, 8, 8, plain(8, 8, contrast=0.625))
        add(kind, 8, 8, plain(8, 8, saturation=1.25))
        add(kind, 8, 8, plain(8, 8, hue=0.375))
        add(kind, 8, 8, plain(8, 8, hue=-0.25))
        add(kind, 8, 8, plain(8, 8, grey=1))
        add(kind, 8, 8, plain(8, 8, flip=1))
    for order in range(24):
        h, w = [(8, 8), (6, 10), (9, 5)][order % 3]
        ch, cw = int(rng.integers(1, h + 1)), int(rng.integers(1, w + 1))
        add(["noise", "coarse", "ramp"][order % 3 if order % 2 else 2], h, w, dict(
            top=int(rng.integers(0, h - ch + 1)), left=int(rng.integers(0, w - cw + 1)), height=ch, width=cw,
            brightness=f(0.6, 1.4), contrast=f(0.6, 1.4), saturation=f(0.6, 1.4), hue=f(-0.4, 0.4),
            order=order, grey=int(order % 5 == 4), flip=int(order % 4 == 3)))
    # Cases before these stay as they are: what is sometimes done is named only where it is.
    for sigma in (0.125, 0.5, 1.0, 2.0):
        add("noise", 7, 9, plain(7, 9, blur=sigma))
    add("noise", 2, 3, plain(2, 3, blur=1.0))
    add("noise", 40, 43, plain(40, 43, blur=1.5, flip=1))
    for kind in ("noise", "coarse", "ramp"):
        add(kind, 8, 8, plain(8, 8, solarise=1))
    for order in range(0, 24, 3):
        h, w = [(8, 8), (6, 10), (9, 5)][order // 3 % 3]
        add("noise", h, w, dict(
            top=1, left=2, height=h - 2, width=w - 3,
            brightness=f(0.6, 1.4), contrast=f(0.6, 1.4), saturation=f(0.6, 1.4), hue=f(-0.4, 0.4),
            order=order, grey=int(order % 5 == 4), flip=int(order % 4 == 3), blur=f(0.1, 2), solarise=int(order % 2)))
    with open(OUT, "w") as file:
        made = f"tools/golden/augment.py, torch {torch.__version__}, torchvision {torchvision.__version__}"
        file.write('{"made_by": ' + json.dumps(made) + f', "mean": {json.dumps(MEAN)}, "std": {json.dumps(STD)}, "cases": [\n')
        file.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")
    print(len(cases), "cases,", os.path.getsize(OUT), "bytes")


if __name__ == "__main__":
    main()
