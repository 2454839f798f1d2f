#!/usr/bin/env python3
"""Write crates/engine/tests/golden/similarity.json: what PyTorch makes of the loss, the memory update and discovery.

usage: loss.py            (needs: pip install torch)

Loss: mean over the batch of -log(sum of p over each query's positives), p = softmax(queries keys^T / temperature),
with autograd's gradient. Memory: the rows after m = normalise((1 - rate) m + rate x). Discovery: the entropy of
softmax(keys keys^T / temperature), self included, and the top-k with self left out. Computed in f64 from f32 inputs.
Read by crates/engine/tests/it/similarity_golden.rs.
"""
import json, os
import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/engine/tests/golden/similarity.json")


def case(seed, batch, n, dim, temperature, rate, k, normalised):
    g = torch.Generator().manual_seed(seed)
    queries = torch.randn(batch, dim, generator=g)
    keys = torch.randn(n, dim, generator=g)
    if normalised:
        queries = torch.nn.functional.normalize(queries)
        keys = torch.nn.functional.normalize(keys)
    indices = torch.randperm(n, generator=g)[:batch]
    neighbours = torch.randint(0, n, (batch, k), generator=g)
    positives = []
    for i, more in zip(indices.tolist(), neighbours.tolist()):
        anchor = (i + seed) % 2 == 0
        positives.append(list(dict.fromkeys([i] + (more if anchor else []))))

    q, m = queries.double().requires_grad_(), keys.double()
    p = torch.softmax(q @ m.T / temperature, 1)
    losses = torch.stack([-torch.log(p[i, own].sum()) for i, own in enumerate(positives)])
    losses.mean().backward()

    blended = m.clone()
    blended[indices] = torch.nn.functional.normalize((1 - rate) * m[indices] + rate * queries.double())

    s = m @ m.T
    p = torch.softmax(s / temperature, 1)
    entropy = -(p * p.log()).sum(1)
    s.fill_diagonal_(-torch.inf)
    top = s.topk(k, 1)
    flat = lambda t: t.detach().flatten().tolist()
    return dict(
        dim=dim, temperature=temperature, rate=rate, k=k, queries=flat(queries), keys=flat(keys),
        indices=flat(indices), positives=positives, losses=flat(losses), gradient=flat(q.grad), blended=flat(blended),
        entropy=flat(entropy), neighbours=flat(top.indices), similarities=flat(top.values),
    )


cases = [
    case(0, 4, 11, 8, 0.1, 0.5, 1, True),
    case(1, 3, 20, 5, 0.07, 0.25, 3, True),
    case(2, 5, 9, 16, 1.0, 0.5, 2, False),
]
os.makedirs(os.path.dirname(OUT), exist_ok=True)
with open(OUT, "w") as f:
    json.dump(dict(torch=torch.__version__, cases=cases), f)
