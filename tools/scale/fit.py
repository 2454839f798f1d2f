"""Fits the model of crates/train/src/cost_model.rs to some lines of measure.sh, and compares it with the others.

A step takes t0 + Q·N·D·c / min(P, cores) + log2(P)·l seconds, with Q queries over N rows of D values by P processes: what processes exchange
on one machine is small, and is in l. The quickest of the steps counts, since other work on the machine can only slow them down.
"""

import json
import os
import sys

import numpy as np

FITTED = {10_000, 300_000, 3_000_000}


def main() -> None:
    lines = [line.split(" ", 1)[1] for line in open(sys.argv[1]) if "{" in line]
    runs = [json.loads(line) for line in lines]
    cores = os.cpu_count() or 1
    terms = [[1.0, r["batch"] * r["n"] * r["dim"] / min(r["processes"], cores), np.log2(r["processes"])] for r in runs]
    terms, seconds = np.array(terms), np.array([r["quickest"] for r in runs])
    used = np.array([r["n"] in FITTED for r in runs])
    weights = 1 / seconds[used]  # relative errors count
    found, *_ = np.linalg.lstsq(terms[used] * weights[:, None], np.ones(used.sum()), rcond=None)
    print(f"t0 {found[0]:.3e} s, c {found[1]:.3e} s a query, row and value, l {found[2]:.3e} s a doubling; {cores} cores")
    print("| rows | processes | measured, ms | model, ms | off | |\n|---|---|---|---|---|---|")
    for run, row, took, fit in zip(runs, terms, seconds, used):
        model = row @ found
        note = "fitted" if fit else ""
        print(f"| {run['n']:,} | {run['processes']} | {1e3 * took:.2f} | {1e3 * model:.2f} | {model / took - 1:+.0%} | {note} |")


main()
