#!/usr/bin/env python3
"""Whole networks in PyTorch: crates/models/tests/golden/networks.safetensors, read by crates/models/tests/it/networks.rs.

usage: python tools/golden/networks.py        (needs: pip install torch torchvision numpy safetensors)

ResNet50 (torchvision's own bottleneck blocks, width 2) and AlexNet with batch norm (width 2), both with 8 features of unit
length, in the small form for 16×16 pictures, in the large one for 64×64 and in the medium one for 32×32 (u8, NHWC; the network
sees (v/255 − 0.5)/0.25).
For each: all parameters, with running statistics that are not those of a fresh network, the features in inference, the
features of a training pass, and the gradient of the first convolution's weights for the loss Σ features · direction.
"""
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from torchvision.models.resnet import Bottleneck, ResNet

OUT = Path(__file__).parents[2] / "crates/models/tests/golden/networks.safetensors"
BATCH, WIDTH, FEATURES = 4, 2, 8


class NarrowResNet(ResNet):
    """torchvision's ResNet, but for its fixed width of 64 and its one stem."""

    def __init__(self, block, layers, form):
        large = form == "large"
        nn.Module.__init__(self)
        self._norm_layer, self.inplanes, self.dilation = nn.BatchNorm2d, WIDTH, 1
        self.groups, self.base_width = 1, 64
        small = dict(kernel_size=3, stride=2 if form == "medium" else 1, padding=1)
        stem = dict(kernel_size=7, stride=2, padding=3) if large else small
        self.conv1, self.bn1 = nn.Conv2d(3, WIDTH, bias=False, **stem), nn.BatchNorm2d(WIDTH)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        for stage, blocks in enumerate(layers):
            layer = self._make_layer(block, WIDTH << stage, blocks, stride=1 if stage == 0 else 2)
            setattr(self, f"layer{stage + 1}", layer)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(block.expansion * (WIDTH << 3), FEATURES)


class AlexNet(nn.Module):
    def __init__(self, size, form):
        super().__init__()
        large = form == "large"
        small = dict(kernel_size=5, stride=2 if form == "medium" else 1, padding=2)
        stem = dict(kernel_size=11, stride=4, padding=2) if large else small
        self.pool = nn.MaxPool2d(3, 2, 0 if large else 1)
        channels = [3, WIDTH, 3 * WIDTH, 6 * WIDTH, 4 * WIDTH, 4 * WIDTH]
        windows = [stem, dict(kernel_size=5, padding=2)] + 3 * [dict(kernel_size=3, padding=1)]
        for i, window in enumerate(windows):
            setattr(self, f"conv{i + 1}", nn.Conv2d(channels[i], channels[i + 1], bias=False, **window))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        with torch.no_grad():
            places = self.convolutions(torch.zeros(2, 3, size, size)).shape[2]
        self.fc6, self.bn6 = nn.Conv2d(4 * WIDTH, 64 * WIDTH, places, bias=False), nn.BatchNorm2d(64 * WIDTH)
        self.fc7, self.bn7 = nn.Conv2d(64 * WIDTH, 64 * WIDTH, 1, bias=False), nn.BatchNorm2d(64 * WIDTH)
        self.fc = nn.Linear(64 * WIDTH, FEATURES)

    def convolutions(self, x):
        for i in range(1, 6):
            x = F.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
            x = self.pool(x) if i in (1, 2, 5) else x
        return x

    def forward(self, x):
        x = F.relu(self.bn6(self.fc6(self.convolutions(x))))
        return self.fc(F.relu(self.bn7(self.fc7(x))).flatten(1))


def case(name, net, pictures, direction, tensors):
    for p in net.modules():
        if isinstance(p, nn.BatchNorm2d):
            nn.init.uniform_(p.weight, 0.5, 1.5)
            nn.init.uniform_(p.bias, -0.5, 0.5)
            nn.init.uniform_(p.running_mean, -0.5, 0.5)
            nn.init.uniform_(p.running_var, 0.5, 1.5)
    start = {k: v.clone() for k, v in net.state_dict().items() if v.is_floating_point()}
    net, doubles = net.double(), (pictures.double() / 255 - 0.5) / 0.25
    with torch.no_grad():
        inferred = F.normalize(net.eval()(doubles))
    trained = F.normalize(net.train()(doubles))
    (trained * direction).sum().backward()
    found = {
        "inferred": inferred,
        "trained": trained.detach(),
        "gradient": net.conv1.weight.grad,
    }
    tensors |= {f"{name}/{k}": v.float().contiguous() for k, v in (found | start).items()}


if __name__ == "__main__":
    torch.manual_seed(0)
    tensors = {}
    for form, size in [("small", 16), ("large", 64), ("medium", 32)]:
        pictures = torch.randint(256, (BATCH, 3, size, size), dtype=torch.uint8)
        direction = torch.randn(BATCH, FEATURES)
        for name, net in [
            ("resnet50", NarrowResNet(Bottleneck, [3, 4, 6, 3], form)),
            ("alexnet", AlexNet(size, form)),
        ]:
            case(f"{form}/{name}", net, pictures, direction, tensors)
        tensors |= {f"{form}/pictures": pictures.permute(0, 2, 3, 1).contiguous(), f"{form}/direction": direction}
    save_file(tensors, OUT, metadata={"made_by": "tools/golden/networks.py", "torch": torch.__version__})
    OUT.chmod(0o644)
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")
