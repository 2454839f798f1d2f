#!/usr/bin/env python3
"""Writes the files of torch.save that crates/models/tests/it/torch_files.rs reads.

usage: torch_files.py [OUT_DIR]      (needs: pip install torch)
"""
import os
import sys
from collections import OrderedDict

import torch


class Calls:
    """What must never be called."""

    def __reduce__(self):
        return (os.system, ("echo called",))


def main(out):
    state = OrderedDict()
    state["a.weight"] = torch.tensor([[1.5, -2.0], [0.25, 3.0]])
    state["a.half"] = torch.tensor([1.0, 0.5], dtype=torch.float16)
    state["a.bf16"] = torch.tensor([1.0, -0.5], dtype=torch.bfloat16)
    state["a.num_batches_tracked"] = torch.tensor(3)
    state["view"] = torch.arange(6.0)[2:5]
    state["one"] = torch.ones(3, 1)
    torch.save(state, f"{out}/state_dict.pth")
    torch.save({"epoch": 3, "state_dict": state, "best": 0.5}, f"{out}/checkpoint.pth")
    torch.save({"t": torch.arange(6.0).reshape(2, 3).t()}, f"{out}/transposed.pth")
    torch.save({"x": Calls()}, f"{out}/calls.pth")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    main(sys.argv[1] if len(sys.argv) > 1 else f"{here}/../../crates/models/tests/fixtures")
