#!/usr/bin/env python3
"""Write crates/engine/tests/golden/optimisers.json: steps of PyTorch's SGD and AdamW, and of timm's LARS.

usage: optimisers.py        (needs: pip install torch timm)

Each case has two tensors of different groups: weights, the gradients of several steps, and weights and state after each of
them, in f64. The second tensor has an eighth of the rate and a weight decay of its own. The first is frozen in some steps
of some cases: it has no gradient there, and state only once it was trained.
Read by crates/engine/tests/it/optimisers.rs.
"""
import json
from pathlib import Path

import torch
from timm.optim.lars import Lars

OUT = Path(__file__).parents[2] / "crates/engine/tests/golden/optimisers.json"
RATE, STEPS = 0.125, 5


def flat(t):
    return t.detach().flatten().tolist()


def case(name, make, decays, state, frozen=(0, 0)):
    tensors = [torch.nn.Parameter(torch.randn(n).double()) for n in (7, 3)]
    rates = [RATE, RATE / 8]
    groups = [dict(params=[t], lr=r, weight_decay=d) for t, r, d in zip(tensors, rates, decays)]
    optimiser = make(groups)
    steps, begin = [], [flat(t) for t in tensors]
    for step in range(STEPS):
        for t in tensors:
            t.grad = torch.randn_like(t)
        gradients = [flat(t.grad) for t in tensors]  # LARS changes them
        if step in range(*frozen):
            tensors[0].grad = None
        optimiser.step()
        slots = [[flat(optimiser.state[t].get(slot, torch.zeros_like(t))) for slot in state] for t in tensors]
        steps.append(dict(gradients=gradients, weights=[flat(t) for t in tensors], slots=slots))
    return dict(name=name, rate=RATE, decays=decays, frozen=frozen, begin=begin, steps=steps)


def sgd(nesterov):
    return lambda groups: torch.optim.SGD(groups, lr=RATE, momentum=0.875, nesterov=nesterov)


def lars(nesterov):
    return lambda groups: Lars(groups, lr=RATE, momentum=0.875, nesterov=nesterov, trust_coeff=0.0625, eps=2.0**-20)


def adam_w(groups):
    return torch.optim.AdamW(groups, lr=RATE, betas=(0.875, 0.9375), eps=2.0**-20)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    momentum, moments = ["momentum_buffer"], ["exp_avg", "exp_avg_sq"]
    decays = [0.03125, 0.25]
    cases = [
        case("sgd", sgd(False), decays, momentum),
        case("sgd_nesterov", sgd(True), decays, momentum),
        case("lars", lars(False), decays, momentum),
        case("lars_nesterov", lars(True), decays, momentum),
        case("lars_of_a_bias", lars(False), [0.03125, 0.0], momentum),
        case("adam_w", adam_w, decays, moments),
        case("adam_w_frozen_first", adam_w, decays, moments, frozen=(0, 3)),
        case("adam_w_frozen_later", adam_w, decays, moments, frozen=(2, 4)),
    ]
    OUT.write_text(json.dumps(dict(torch=torch.__version__, cases=cases)))
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")
