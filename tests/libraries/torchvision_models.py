"""torchvision: classifiers of many kinds are trained, features are taken out of one, detectors find boxes."""

import torch
import torchvision
from torchvision import models
from torchvision.models import detection
from torchvision.models.detection.rpn import AnchorGenerator
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

torch.set_default_dtype(torch.float64)  # batches of two images make batch norms of small maps too sensitive to rounding
torch.manual_seed(1)
x = torch.randn(2, 3, 64, 64)
convnext = [models.convnext.CNBlockConfig(16, 32, 2), models.convnext.CNBlockConfig(32, None, 2)]
for name, make in {
    "resnet": lambda: models.resnet18(num_classes=5),
    "mobilenet": lambda: models.mobilenet_v3_small(num_classes=5),
    "efficientnet": lambda: models.efficientnet_b0(num_classes=5),
    "shufflenet": lambda: models.shufflenet_v2_x0_5(num_classes=5),
    "convnext": lambda: models.ConvNeXt(convnext, num_classes=5),
    "swin": lambda: models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=5),
    "vit": lambda: models.VisionTransformer(64, 16, 2, 2, 32, 64, num_classes=5),
    "maxvit": lambda: models.maxvit.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.1, num_classes=5),
    "densenet": lambda: models.DenseNet(8, (2, 2), 8, num_classes=5),
}.items():
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]))
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f}", f"{sum(p.abs().sum().item() for p in model.parameters()):.2f}")
torch.manual_seed(0)
model = models.resnet18(num_classes=5).eval()
print(len(get_graph_node_names(model)[0]))
extract = create_feature_extractor(model, {"layer2": "middle", "layer4.1.relu_1": "late"})
print({name: (tuple(one.shape), round(one.sum().item(), 2)) for name, one in extract(x).items()})

torch.set_default_dtype(torch.float32)
torch.manual_seed(0)
backbone = torchvision.models.mobilenet_v2().features[:5]
backbone.out_channels = 32
model = detection.FasterRCNN(
    backbone,
    3,
    rpn_anchor_generator=AnchorGenerator(((16, 32, 64),), ((0.5, 1.0, 2.0),)),
    box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0"], 7, 2),
    min_size=96,
    max_size=128,
    rpn_post_nms_top_n_train=60,
    rpn_post_nms_top_n_test=60,
)
images = [torch.rand(3, 90, 100), torch.rand(3, 80, 110)]
targets = [
    {"boxes": torch.tensor([[10.0, 10, 40, 50], [30, 20, 80, 70]]), "labels": torch.tensor([1, 2])},
    {"boxes": torch.tensor([[5.0, 15, 60, 60]]), "labels": torch.tensor([1])},
]
optimizer = torch.optim.SGD(model.parameters(), 0.005)
for _ in range(2):
    losses = model(images, targets)
    optimizer.zero_grad()
    sum(losses.values()).backward()
    optimizer.step()
    print({name: round(one.item(), 3) for name, one in losses.items()})
model.eval()
with torch.no_grad():
    for found in model(images):
        print(len(found["boxes"]), [round(one, 2) for one in found["scores"][:4].tolist()])
