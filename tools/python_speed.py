#!/usr/bin/env python3
"""How much longer does an array take from Python than in the library itself?

    cargo build --release -p anchorhood-index --example array_speed
    tools/python_speed.py target/release/examples/array_speed [PICTURES] [SIDE] [TURNS]

run by a Python that has the package (a release wheel). Both sides take turns; what is told is the least time of each, which other programs on
the machine disturb least, and the ratio of the medians.
"""

import statistics
import subprocess
import sys
import time

import numpy as np

import anchorhood


def main() -> None:
    program, *rest = sys.argv[1:]
    pictures, side, turns = [int(word) for word in rest] + [10_000, 64, 5][len(rest) :]
    model = anchorhood.load("base", device="cpu", threads=2)
    shape = (pictures, side, side, 3)
    array = (np.arange(np.prod(shape)) % 251).astype(np.uint8).reshape(shape)
    model.embed(array[:256])
    library, python = [], []
    for _ in range(turns):
        told = subprocess.run([program, str(pictures), str(side), "1", "2"], capture_output=True, text=True, check=True)
        library.append(float(told.stdout))
        began = time.perf_counter()
        model.embed(array)
        python.append(time.perf_counter() - began)
    least, middle = min(python) / min(library), statistics.median(python) / statistics.median(library)
    print(f"{pictures} pictures of {side}×{side}, {turns} turns: library {min(library):.3f} s, Python {min(python):.3f} s at least")
    print(f"Python / library: {least:.3f} of the least times, {middle:.3f} of the medians")


if __name__ == "__main__":
    main()
