#!/usr/bin/env python3
"""What PyTorch computes for each layer: crates/engine/tests/golden/ops.safetensors, read by crates/engine/tests/it/golden.rs.

usage: python tools/golden/ops.py        (needs: pip install torch numpy safetensors)

For each case: x, its output y in training and y_eval in inference, the gradient dy given to y, and what follows from
it: dx, and per parameter `NAME` the values before (param/NAME), gradients (grad/NAME) and running statistics after one
training pass (after/NAME). Pictures are NHWC; parameters as PyTorch has them. The case `sgd` holds weights, gradients of
several steps, and the weights and momentum after each.
"""
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

OUT = Path(__file__).parents[2] / "crates/engine/tests/golden/ops.safetensors"
tensors = {}


def nhwc(t):
    return t.permute(0, 2, 3, 1) if t.dim() == 4 else t


def keep(name, t):
    tensors[name] = t.detach().float().contiguous().clone()


def case(name, module, shape, of=torch.float32):
    """One training pass with its gradients, then inference with the statistics it left; `of` has the values of x, where rounding it would change more than digits."""
    for p in list(module.parameters()) + [b for b in module.buffers() if b.is_floating_point()]:
        if p.dim() == 1:  # batch norm begins at ones and zeros, which would hide mistakes
            p.data.add_(torch.empty_like(p).uniform_(-0.4, 0.4))
    for key, value in module.state_dict().items():
        if value.is_floating_point():
            keep(f"{name}/param/{key}", value)
    x = torch.randn(shape).to(of).float().requires_grad_()
    y = module.train()(x)
    dy = torch.randn_like(y)
    y.backward(dy)
    keep(f"{name}/x", nhwc(x)), keep(f"{name}/y", nhwc(y))
    keep(f"{name}/dy", nhwc(dy)), keep(f"{name}/dx", nhwc(x.grad))
    for key, p in module.named_parameters():
        keep(f"{name}/grad/{key}", p.grad)
    for key, b in module.named_buffers():
        if b.is_floating_point():
            keep(f"{name}/after/{key}", b)
    keep(f"{name}/y_eval", nhwc(module.eval()(x)))


class Named(nn.Module):
    """Layers by name, one after the other."""

    def __init__(self, **layers):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return x


class Block(nn.Module):
    """relu(bn(conv(x)) + x)"""

    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)) + x)


class Normalise(nn.Module):
    def forward(self, x):
        return F.normalize(x)


class Lab(nn.Module):
    """Normalised sRGB to CIE Lab, L over 50 less 1, a and b over 110. Its matrix follows from where the primaries and white lie (IEC 61966-2-1)."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((3,), 0.45))
        self.register_buffer("std", torch.full((3,), 0.5))

    def forward(self, x):
        v = (x * self.std.view(3, 1, 1) + self.mean.view(3, 1, 1)).clamp(0, 1).double()
        linear = torch.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
        primaries = torch.tensor([[0.64, 0.33], [0.30, 0.60], [0.15, 0.06]]).double()
        primaries = torch.stack([primaries[:, 0] / primaries[:, 1], torch.ones(3), (1 - primaries.sum(1)) / primaries[:, 1]])
        white = torch.tensor([0.95047, 1.0, 1.08883]).double()
        t = torch.einsum("kc,bcyx->bkyx", primaries * torch.linalg.solve(primaries, white) / white[:, None], linear)
        small = (6 / 29) ** 3
        f = torch.where(t > small, t.clamp(min=small) ** (1 / 3), t / (3 * (6 / 29) ** 2) + 4 / 29)
        fx, fy, fz = f.unbind(1)
        return torch.stack([(116 * fy - 16) / 50 - 1, 500 * (fx - fy) / 110, 200 * (fy - fz) / 110], 1).float()


class Spread(nn.Module):
    """A transposed convolution of one place, as a convolution with the kernel turned round, which reaches over the edges."""

    def __init__(self, i, o, kernel):
        super().__init__()
        self.conv = nn.Conv2d(i, o, kernel, bias=False)

    def forward(self, x):
        return F.conv_transpose2d(x, self.conv.weight.flip(2, 3).transpose(0, 1))


def conv(i, o, kernel, stride, padding, bias):
    return Named(conv=nn.Conv2d(i, o, kernel, stride, padding, bias=bias))


def sgd(name, nesterov):
    w = nn.Parameter(torch.randn(3, 4, 1, 1))
    optimiser = torch.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov)
    keep(f"{name}/w", w)
    for step in range(5):
        w.grad = torch.randn_like(w)
        keep(f"{name}/g{step}", w.grad)
        optimiser.step()
        keep(f"{name}/w{step}", w)
        keep(f"{name}/v{step}", optimiser.state[w]["momentum_buffer"])


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    case("conv_1x1", conv(5, 7, 1, 1, 0, False), (2, 5, 4, 3))
    case("conv_1x1_stride_2", conv(4, 6, 1, 2, 0, False), (2, 4, 5, 6))
    case("conv_3x3", conv(3, 8, 3, 1, 1, True), (2, 3, 6, 5))
    case("conv_3x3_stride_2", conv(4, 5, 3, 2, 1, False), (2, 4, 7, 6))
    case("conv_5x2_uneven", conv(3, 4, (5, 2), (1, 3), (2, 1), True), (2, 3, 6, 7))
    case("conv_7x7_stride_2", conv(3, 4, 7, 2, 3, False), (1, 3, 9, 8))
    case("conv_3x3_wide", conv(16, 16, 3, 1, 1, False), (2, 16, 5, 4))
    case("batch_norm", Named(bn=nn.BatchNorm2d(5)), (3, 5, 4, 3))
    case("fused", Named(conv=nn.Conv2d(3, 6, 3, 2, 1, bias=False), bn=nn.BatchNorm2d(6), relu=nn.ReLU()), (3, 3, 6, 5))
    case("fused_residual", Block(4), (3, 4, 5, 4))
    case("max_pool", Named(pool=nn.MaxPool2d(3, 2, 1)), (2, 4, 7, 6))
    case("global_average", Named(pool=nn.AdaptiveAvgPool2d(1)), (2, 5, 4, 3))
    case("linear", Named(fc=nn.Linear(9, 6)), (4, 9))
    case("l2_normalise", Normalise(), (4, 9))
    sgd("sgd", False)
    sgd("sgd_nesterov", True)
    case("leaky_relu", Named(f=nn.LeakyReLU(0.2)), (2, 3, 4, 5))
    case("tanh", Named(f=nn.Tanh()), (2, 3, 4, 5))
    case("upsample", Named(up=nn.Upsample(scale_factor=2, mode="nearest")), (2, 3, 4, 5))
    case("conv_4x4_of_one_place", Spread(5, 6, 4), (2, 5, 1, 1))
    case("lab", Named(lab=Lab()), (3, 3, 5, 4), of=torch.bfloat16)  # what is cut off has no gradient
    OUT.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUT, metadata={"made_by": "tools/golden/ops.py", "torch": torch.__version__})
    OUT.chmod(0o644)
    print(f"{OUT.name}: {len(tensors)} tensors, {OUT.stat().st_size} bytes")
