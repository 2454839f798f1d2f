#!/usr/bin/env python3
"""The first 20 losses of a training in PyTorch: crates/models/tests/golden/trajectory.safetensors, read by
crates/models/tests/it/trajectory.rs.

usage: python tools/golden/trajectory.py        (needs: pip install torch numpy safetensors)

ResNet18 for small pictures (width 4, 16×16, torchvision's names, 128 features of unit length) learns 64 pictures against
a memory bank, in batches of 8, with temperature 0.1 and SGD (rate 0.03, Nesterov momentum 0.9, decay 5e-4); after each
step m ← normalise(0.5·m + 0.5·x). Steps 0–9 tell instances apart; from step 10 on half of the pictures have a neighbour
that counts as the same thing: −log(p_i + p_neighbour).

The weights at the start are those of a short training (300 steps at rate 0.01, other bank): from fresh ones this small
network is chaotic, and PyTorch's own f32 losses leave its f64 ones by 5% within 20 steps. From these, f32 and f64 agree to
1e-6, so that a difference of 1e-3 is a mistake. What some mistakes would cost is printed.

The file holds the pictures (u8, NHWC; the network sees (v/255 − 0.5)/0.25), the indices of each batch, each picture's
neighbour (its own index where it has none), the bank, the weights and statistics at the start, and the losses.
"""
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

OUT = Path(__file__).parents[2] / "crates/models/tests/golden/trajectory.safetensors"
N, BATCH, STEPS, SIZE, WIDTH, FEATURES = 64, 8, 20, 16, 4, 128


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.downsample = None
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        around = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + around)


class ResNet18(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        i = width
        for stage in range(4):
            o = width << stage
            blocks = nn.Sequential(Block(i, o, 1 if stage == 0 else 2), Block(o, o, 1))
            setattr(self, f"layer{stage + 1}", blocks)
            i = o
        self.fc = nn.Linear(8 * width, features)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return F.normalize(self.fc(x.mean((2, 3))))


def pictures():
    """Smooth blotches of colour with some noise: different pictures, some alike."""
    coarse = F.interpolate(torch.rand(N, 3, 4, 4), size=SIZE, mode="bilinear")
    return ((0.85 * coarse + 0.15 * torch.rand(N, 3, SIZE, SIZE)) * 255).round().to(torch.uint8)


def train(net, x, bank, indices, neighbours, dtype=torch.float32, rate=0.03, eta=0.5, **sgd):
    """The losses of a training; `neighbours` may be None."""
    net, bank = net.to(dtype).train(), bank.to(dtype).clone()
    x = (x.to(dtype) / 255 - 0.5) / 0.25
    settings = dict(lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4) | sgd
    optimiser = torch.optim.SGD(net.parameters(), **settings)
    losses = []
    for step, batch in enumerate(indices):
        features = net(x[batch])
        log_p = F.log_softmax(features @ bank.t() / 0.1, dim=1)
        log_sum = log_p.gather(1, batch[:, None])
        if neighbours is not None and step >= STEPS // 2:
            other = log_p.gather(1, neighbours[batch][:, None])
            alone = (neighbours[batch] == batch)[:, None]
            log_sum = torch.where(alone, log_sum, torch.logaddexp(log_sum, other))
        loss = -log_sum.mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            bank[batch] = F.normalize((1 - eta) * bank[batch] + eta * features)
        losses.append(loss.item())
    return losses


def batches(steps):
    return torch.stack([torch.randperm(N)[:BATCH] for _ in range(steps)])


def any_bank():
    return (torch.rand(N, FEATURES) * 2 - 1) / (FEATURES / 3) ** 0.5


def off(losses, expected):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected))


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, net = pictures(), ResNet18(WIDTH, FEATURES)
    train(net, x, any_bank(), batches(300), None, rate=0.01)
    start = {k: v.clone() for k, v in net.state_dict().items()}

    bank, indices, everyone = any_bank(), batches(STEPS), torch.arange(N)
    neighbours = torch.where(everyone % 2 == 0, (everyone + 5) % N, everyone)

    def again(neighbours=neighbours, **changes):
        net = ResNet18(WIDTH, FEATURES)
        net.load_state_dict(start)
        return train(net, x, bank, indices, neighbours, **changes)

    losses = again()
    print("losses", " ".join(f"{v:.4f}" for v in losses))
    print(f"off f64 by {off(losses, again(dtype=torch.float64)):.1e}")
    print(f"without Nesterov off by {off(again(nesterov=False), losses):.1e}")
    print(f"without decay off by {off(again(weight_decay=0), losses):.1e}")
    print(f"with rate 0.0301 off by {off(again(rate=0.0301), losses):.1e}")
    print(f"with eta 0.51 off by {off(again(eta=0.51), losses):.1e}")
    print(f"without neighbours off by {off(again(neighbours=None), losses):.1e}")

    tensors = {f"start/{k}": v for k, v in start.items() if v.is_floating_point()}
    tensors |= {
        "pictures": x.permute(0, 2, 3, 1).contiguous(),
        "indices": indices.to(torch.int32),
        "neighbours": neighbours.to(torch.int32),
        "bank": bank,
        "losses": torch.tensor(losses, dtype=torch.float32),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUT, metadata={"made_by": "tools/golden/trajectory.py", "torch": torch.__version__})
    OUT.chmod(0o644)
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")
