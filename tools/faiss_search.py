#!/usr/bin/env python3
"""The nearest neighbour of every row among all others, by exact inner product, in faiss.

usage: faiss_search.py [--n 50000] [--dim 128] [--threads 2]

Top-2 of IndexFlatIP, since a row finds itself first. `anchorhood bench discover` computes the entropy of each row's
softmax as well.
"""
import argparse
import time

import faiss
import numpy as np


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--n", type=int, default=50_000)
    p.add_argument("--dim", type=int, default=128)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    faiss.omp_set_num_threads(a.threads)
    rows = np.random.default_rng(0).standard_normal((a.n, a.dim), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = faiss.IndexFlatIP(a.dim)
    index.add(rows)
    index.search(rows[:64], 2)
    start = time.perf_counter()
    index.search(rows, 2)
    seconds = time.perf_counter() - start
    print(f"faiss {faiss.__version__} IndexFlatIP n={a.n} dim={a.dim} top-2 threads={a.threads}: {seconds:.3f} s")


if __name__ == "__main__":
    main()
