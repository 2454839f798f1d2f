#!/usr/bin/env python3
"""Write crates/data/tests/fixtures/{mat,svhn,imagenet,cub200,dogs}: published data sets of a few pictures each, in the
exact form their official archives have on disk.

usage: set_fixtures.py            (needs: pip install numpy scipy pillow)

SVHN: row r, column c, channel k of picture n of file f (0 train, 1 test, 2 extra) is (f * 83 + n * 29 + k * 61 + r * 5 +
c * 3) % 256; its label is digit (f * 4 + n * 7) % 10, written as MATLAB counts: 10 for the digit 0. The JPEG files are
plain squares of (40 * class + 40, 20 * number, 128). Read by crates/data/tests/it/sets.rs and crates/data/src/mat/tests.rs.
"""
import os, struct
import numpy as np
from PIL import Image
from scipy.io import savemat

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/data/tests/fixtures")


def path(*parts):
    name = os.path.join(OUT, *parts)
    os.makedirs(os.path.dirname(name), exist_ok=True)
    return name


def save(name, variables, **options):
    """A MATLAB file that is the same every time it is written."""
    savemat(name, variables, **options)
    if options.get("format", "5") == "5":
        with open(name, "r+b") as f:
            f.write(b"MATLAB 5.0 MAT-file, written by tools/golden/set_fixtures.py".ljust(116))


def text(name, lines):
    with open(name, "w", newline="\n") as f:
        f.writelines(line + "\n" for line in lines)


def picture(name, kind, number):
    Image.new("RGB", (24, 20), (40 * kind + 40, 20 * number, 128)).save(name, quality=95)


def cells(values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


def mat():
    synsets = np.array([(7, "n00000001"), (9, "n00000002")], dtype=[("ID", object), ("WNID", object)]).reshape(2, 1)
    variables = {
        "unwanted": np.arange(100.0),
        "bytes": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "numbers": np.array([-1.5, 300.0, 1e10]),
        "text": "grüße",
        "cells": cells(["a/b.jpg", "c/d.jpg", np.array([])]),
        "synsets": synsets,
    }
    save(path("mat", "compressed.mat"), variables, do_compression=True)
    save(path("mat", "plain.mat"), variables, do_compression=False)
    save(path("mat", "v4.mat"), {"X": np.arange(6.0)}, format="4")
    # What MATLAB puts before the HDF5 of a 7.3 file, and HDF5's own first bytes where they stand.
    with open(path("mat", "v73.mat"), "wb") as f:
        f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1 00:00:00 2024 HDF5 schema 1.00 .".ljust(124))
        f.write(struct.pack("<H", 0x0200) + b"IM" + bytes(384) + b"\x89HDF\r\n\x1a\n" + bytes(8))


def svhn():
    r, c, k = np.meshgrid(np.arange(32), np.arange(32), np.arange(3), indexing="ij")
    for f, (name, count) in enumerate([("train", 4), ("test", 3), ("extra", 2)]):
        pixels = [(f * 83 + n * 29 + k * 61 + r * 5 + c * 3) % 256 for n in range(count)]
        digits = np.array([(f * 4 + n * 7) % 10 for n in range(count)])
        labels = np.where(digits == 0, 10, digits).astype(np.uint8).reshape(-1, 1)
        variables = {"X": np.stack(pixels, axis=3).astype(np.uint8), "y": labels}
        save(path("svhn", f"{name}_32x32.mat"), variables, do_compression=True)


def imagenet():
    # The challenge numbers its classes by its own list, not in the order of the synsets' names.
    synsets = ["n02119789", "n01440764", "n03000684"]
    for kind, synset in enumerate(synsets):
        for number in range(2):
            picture(path("imagenet", "train", synset, f"{synset}_{number + 1}.JPEG"), kind, number)
    truth = [2, 1, 3, 1]
    for number, kind in enumerate(truth):
        picture(path("imagenet", "val", f"ILSVRC2012_val_{number + 1:08}.JPEG"), kind - 1, number)
    data = ["imagenet", "ILSVRC2012_devkit_t12", "data"]
    text(path(*data, "ILSVRC2012_validation_ground_truth.txt"), [str(t) for t in truth])
    fields = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children", "wordnet_height", "num_train_images"]
    words = ["kit fox", "tench", "chain saw", "entity"]
    rows = [
        (i + 1, s, words[i], "a gloss", 0 if i < 3 else 3, np.array([]) if i < 3 else np.arange(1, 4), 0, 2 if i < 3 else 0)
        for i, s in enumerate(synsets + ["n00001740"])
    ]
    table = np.array(rows, dtype=[(field, object) for field in fields]).reshape(-1, 1)
    save(path(*data, "meta.mat"), {"synsets": table}, do_compression=True)


def cub200():
    classes = ["001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross"]
    names, labels, split, boxes = [], [], [], []
    for kind, folder in enumerate(classes):
        for number in range(3):
            name = f"{folder}/{folder[4:]}_{number + 1:04}_{kind * 100 + number}.jpg"
            picture(path("cub200", "CUB_200_2011", "images", *name.split("/")), kind, number)
            names.append(name)
            labels.append(kind + 1)
            split.append(int(number != 1))
            boxes.append("2.0 3.0 12.0 10.0")
    at = lambda name: path("cub200", "CUB_200_2011", name)
    listed = lambda values: [f"{i + 1} {value}" for i, value in enumerate(values)]
    text(at("classes.txt"), listed(classes))
    text(at("images.txt"), listed(names))
    text(at("image_class_labels.txt"), listed(labels))
    text(at("train_test_split.txt"), listed(split))
    text(at("bounding_boxes.txt"), listed(boxes))


def dogs():
    breeds = ["n02085620-Chihuahua", "n02085782-Japanese_spaniel"]
    lists = {"train_list.mat": [], "test_list.mat": []}
    for kind, breed in enumerate(breeds):
        for number in range(3):
            name = f"{breed}/{breed[:9]}_{number + 1}.jpg"
            picture(path("dogs", "Images", *name.split("/")), kind, number)
            lists["test_list.mat" if number == 2 else "train_list.mat"].append((name, kind + 1))
    # file_list.mat, the third of lists.tar, holds both and is not needed.
    for name, rows in lists.items():
        variables = {
            "file_list": cells([file for file, _ in rows]),
            "annotation_list": cells([file[:-4] for file, _ in rows]),
            "labels": np.array([[float(label)] for _, label in rows]),
        }
        save(path("dogs", name), variables, do_compression=True)


if __name__ == "__main__":
    mat(), svhn(), imagenet(), cub200(), dogs()
