#!/usr/bin/env python3
"""One training step of instance discrimination in PyTorch, as fast as plain PyTorch does it on a CPU.

usage: torch_step.py [--width 16] [--batch 64] [--n 5000] [--steps 10] [--threads 2]

ResNet18 for 32×32 in channels-last order, cross entropy over a memory bank of N × 128, SGD with Nesterov momentum. The
pictures are random and ready; the memory is not updated (`anchorhood bench step` does update it). Prints the median over
the steps, after a fifth of them, and at least two, to warm up.
"""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.downsample = nn.Sequential()
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        inner = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(inner)) + self.downsample(x))


class ResNet18(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        blocks, i = [], width
        for stage in range(4):
            o = width << stage
            blocks += [Block(i, o, 1 if stage == 0 else 2), Block(o, o, 1)]
            i = o
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(i, features)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return F.normalize(self.fc(x.mean((2, 3))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--width", type=int, default=16)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--n", type=int, default=5000)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    net = ResNet18(a.width, 128).to(memory_format=torch.channels_last)
    x = torch.randn(a.batch, 3, 32, 32).to(memory_format=torch.channels_last)
    bank, target = F.normalize(torch.randn(a.n, 128)), torch.arange(a.batch) % a.n
    sgd = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=5e-4)

    def step():
        sgd.zero_grad(set_to_none=True)
        F.cross_entropy(net(x) @ bank.t() / 0.1, target).backward()
        sgd.step()

    for _ in range(max(2, a.steps // 5)):
        step()
    times = []
    for _ in range(a.steps):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    median = statistics.median(times)
    what = f"torch {torch.__version__} width={a.width} batch={a.batch} n={a.n} threads={a.threads}"
    print(f"{what}: {median:.2f} ms/step, {a.batch / median * 1e3:.0f} pictures/s (median of {a.steps})")


if __name__ == "__main__":
    main()
