#!/usr/bin/env python3
"""Write losses.json and similarity.json of crates/engine/tests/golden: what PyTorch makes of the losses, with autograd's
gradients, of the memory update and of discovery.

usage: losses.py            (needs: pip install torch)

Each case has its inputs (f32), and in f64 the loss of each row and the gradient of weight * mean(losses). The contrastive
loss is written as SimCLR has it: cross-entropy over all other rows, the mean of it over the other views of a picture.
Read by crates/engine/tests/it/losses.rs and rows.rs.

similarity.json, computed in f64 from f32 inputs. Loss: mean over the batch of -log(sum of p over each query's positives),
p = softmax(queries keys^T / temperature). Memory: the rows after m = normalise((1 - rate) m + rate x). Discovery: the
entropy of softmax(keys keys^T / temperature), self included, and the top-k with self left out. Read by
crates/engine/tests/it/losses.rs and similarity.rs.
"""
import json
from pathlib import Path

import torch
import torch.nn.functional as F

OUT = Path(__file__).parents[2] / "crates/engine/tests/golden"
WEIGHT = 0.75


def flat(t):
    return t.detach().flatten().tolist()


def rows(*shape):
    return torch.randn(*shape).double().requires_grad_()


def finish(losses, x, **inputs):
    (WEIGHT * losses.mean()).backward()
    inputs = {key: flat(value) if torch.is_tensor(value) else value for key, value in inputs.items()}
    return dict(inputs, x=flat(x), weight=WEIGHT, losses=flat(losses), gradient=flat(x.grad))


def cross_entropy(batch, classes, items):
    x, labels, indices = rows(batch, classes), torch.randint(classes, (items,)), torch.randint(items, (batch,))
    losses = F.cross_entropy(x, labels[indices], reduction="none")
    return finish(losses, x, dim=classes, labels=labels, indices=indices)


def weighted_cross_entropy(batch, classes, items):
    x, labels, indices = rows(batch, classes), torch.randint(classes, (items,)), torch.randint(items, (batch,))
    weights = torch.rand(classes).double()
    losses = F.cross_entropy(x, labels[indices], weight=weights, reduction="none")
    return finish(losses, x, dim=classes, labels=labels, indices=indices, other=weights)


def counting(views, pictures, dim, margin):
    """Learning to count (Noroozi et al. 2017): the first view is the whole, the others are its parts."""
    x = rows(views * pictures, dim)
    whole, *parts = x.reshape(views, pictures, dim)
    apart = lambda wholes: (sum(parts) - wholes).square().sum(1)
    losses = apart(whole) + F.relu(margin - apart(whole.roll(-1, 0)))
    return finish(losses, x, dim=dim, views=views, margin=margin)


def quarters(pictures, size, channels):
    """The whole picture, shrunk to half, and its quarters, all enlarged to its size; rows are view after view, pixels NHWC."""
    x = torch.randn(pictures, channels, size, size).double()
    half = size // 2
    views = [F.avg_pool2d(x, 2)[..., :half, :half]]
    views += [x[..., top:top + half, left:left + half] for top in (0, size - half) for left in (0, size - half)]
    to = torch.cat([F.interpolate(v, size=size, mode="bilinear", align_corners=False) for v in views])
    return dict(size=size, channels=channels, x=flat(x.permute(0, 2, 3, 1)), to=flat(to.permute(0, 2, 3, 1)))


def tiles(pictures, size, channels, side, corners, normalise):
    """Tiles at given corners, normalised by themselves and enlarged to the picture's size; picture after picture, pixels NHWC."""
    x = torch.randn(pictures, channels, size, size).double()
    cut = torch.stack([x[..., top:top + side, left:left + side] for top, left in corners], 1).flatten(0, 1)
    cut = F.instance_norm(cut, eps=1e-5) if normalise else cut
    to = F.interpolate(cut, size=size, mode="bilinear", align_corners=False)
    places = [top * (size - side + 1) + left for top, left in corners]
    given = dict(size=size, channels=channels, side=side, places=places, normalise=normalise)
    return dict(given, x=flat(x.permute(0, 2, 3, 1)), to=flat(to.permute(0, 2, 3, 1)))


def quantise(count, entries, dim):
    x, codebook = torch.randn(count, dim).double(), torch.randn(entries, dim).double()
    return dict(dim=dim, x=flat(x), codebook=flat(codebook), to=flat(torch.cdist(x, codebook).argmin(1)))


def contrastive(views, batch, dim, temperature, normalised):
    x = rows(views * batch, dim)
    if normalised:  # to numbers that f32 has
        x = F.normalize(x.detach()).float().double().requires_grad_()
    logits = (x @ x.T / temperature).masked_fill(torch.eye(len(x), dtype=bool), -torch.inf)
    own = torch.arange(len(x))
    others = [(own + shift * batch) % len(x) for shift in range(1, views)]
    losses = torch.stack([F.cross_entropy(logits, other, reduction="none") for other in others]).mean(0)
    return finish(losses, x, dim=dim, views=views, temperature=temperature)


def cosine(count, dim):
    x, other = rows(count, dim), rows(count, dim)
    return finish(-F.cosine_similarity(x, other.detach()), x, dim=dim, other=other)


def mean_squared(count, dim):
    x, other = rows(count, dim), rows(count, dim)
    return finish(F.mse_loss(x, other.detach(), reduction="none").mean(1), x, dim=dim, other=other)


def mean_of_others(views, batch, dim, normalise):
    x = torch.randn(views, batch, dim).double()
    each = F.normalize(x, dim=2) if normalise else x
    targets = torch.stack([torch.cat([each[:v], each[v + 1:]]).mean(0) for v in range(views)])
    return dict(dim=dim, views=views, normalise=normalise, x=flat(x), targets=flat(targets))


def similarity(seed, batch, n, dim, temperature, rate, k, normalised):
    g = torch.Generator().manual_seed(seed)
    queries = torch.randn(batch, dim, generator=g)
    keys = torch.randn(n, dim, generator=g)
    if normalised:
        queries = F.normalize(queries)
        keys = F.normalize(keys)
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
    blended[indices] = F.normalize((1 - rate) * m[indices] + rate * queries.double())

    s = m @ m.T
    p = torch.softmax(s / temperature, 1)
    entropy = -(p * p.log()).sum(1)
    s.fill_diagonal_(-torch.inf)
    top = s.topk(k, 1)
    return dict(
        dim=dim, temperature=temperature, rate=rate, k=k, queries=flat(queries), keys=flat(keys),
        indices=flat(indices), positives=positives, losses=flat(losses), gradient=flat(q.grad), blended=flat(blended),
        entropy=flat(entropy), neighbours=flat(top.indices), similarities=flat(top.values),
    )


def write(name, **golden):
    (OUT / name).write_text(json.dumps(dict(torch=torch.__version__, **golden)))
    print(f"{name}: {(OUT / name).stat().st_size} bytes")


if __name__ == "__main__":
    write("similarity.json", cases=[
        similarity(0, 4, 11, 8, 0.1, 0.5, 1, True),
        similarity(1, 3, 20, 5, 0.07, 0.25, 3, True),
        similarity(2, 5, 9, 16, 1.0, 0.5, 2, False),
    ])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    write(
        "losses.json",
        cross_entropy=[cross_entropy(3, 5, 7), cross_entropy(4, 11, 4)],
        contrastive=[contrastive(2, 4, 6, 0.1, True), contrastive(3, 3, 5, 0.5, True), contrastive(2, 3, 4, 1.0, False)],
        cosine=[cosine(3, 7)],
        mean_squared=[mean_squared(3, 7)],
        mean_of_others=[mean_of_others(2, 2, 5, True), mean_of_others(4, 2, 3, False)],
        weighted_cross_entropy=[weighted_cross_entropy(4, 5, 7)],
        counting=[counting(5, 3, 4, 10.0), counting(2, 4, 3, 2.0)],
        quarters=[quarters(2, 4, 3), quarters(1, 5, 2)],
        tiles=[tiles(2, 7, 3, 3, [(0, 0), (4, 1), (2, 4)], True), tiles(1, 5, 2, 2, [(3, 0), (1, 2)], False)],
        quantise=[quantise(20, 6, 2)],
    )
