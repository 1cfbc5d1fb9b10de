"""torchvision: transforms of both kinds on images, boxes and masks, its operations on boxes and regions, pictures drawn."""

import numpy as np
import torch
from PIL import Image
from torchvision import ops, tv_tensors
from torchvision import transforms as first
from torchvision.transforms import v2
from torchvision.utils import draw_bounding_boxes, draw_segmentation_masks, make_grid


def show(name, tensor):
    values = tensor.as_subclass(torch.Tensor).double()
    print(name, type(tensor).__name__, tuple(tensor.shape), tensor.dtype, f"{values.mean():.3f} {values.std():.3f}")


torch.manual_seed(0)
image = tv_tensors.Image(torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8))
corners = torch.tensor([[2.0, 3.0, 20.0, 30.0], [10.0, 5.0, 40.0, 35.0]])
boxes = tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(40, 50))
mask = tv_tensors.Mask(torch.randint(0, 2, (2, 40, 50), dtype=torch.uint8))
for transform in (
    v2.RandomHorizontalFlip(1.0),
    v2.Resize((24, 30)),
    v2.RandomCrop(20),
    v2.RandomResizedCrop(16),
    v2.RandomRotation(30),
    v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10),
    v2.RandomPerspective(0.3, 1.0),
    v2.ElasticTransform(20.0),
    v2.RandomZoomOut(p=1.0),
    v2.RandomIoUCrop(),
    v2.Compose([v2.Resize(20), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3)]),
):
    torch.manual_seed(3)
    made = transform(image, boxes, mask)
    for kind, one in zip(("image", "boxes", "mask"), made, strict=True):
        show(f"{type(transform).__name__} {kind}", one)
for transform in (
    v2.ColorJitter(0.3, 0.3, 0.3, 0.1),
    v2.GaussianBlur(5),
    v2.RandomPosterize(3, 1.0),
    v2.RandomSolarize(100, 1.0),
    v2.RandomEqualize(1.0),
    v2.RandomAutocontrast(1.0),
    v2.RandomErasing(1.0),
    v2.AutoAugment(),
    v2.RandAugment(),
    v2.TrivialAugmentWide(),
    v2.AugMix(),
):
    torch.manual_seed(3)
    show(type(transform).__name__, transform(image))
torch.manual_seed(2)
for mixing in (v2.CutMix(num_classes=4), v2.MixUp(num_classes=4)):
    mixed, labels = mixing(torch.rand(4, 3, 8, 8), torch.arange(4))
    show(type(mixing).__name__, mixed)
    print(labels.round(decimals=3).tolist())
photo = Image.fromarray((np.arange(40 * 50 * 3) % 251).astype(np.uint8).reshape(40, 50, 3))
steps = [
    first.RandomResizedCrop(16),
    first.RandomHorizontalFlip(),
    first.ColorJitter(0.2, 0.2, 0.2, 0.1),
    first.ToTensor(),
]
show("photo", first.Compose(steps)(photo))
show("grid", make_grid(torch.rand(5, 3, 8, 8), nrow=3))
show("drawn", draw_bounding_boxes(image, boxes, colors="red"))
show("masked", draw_segmentation_masks(image, mask.bool(), colors=["red", "blue"]))

# What torchvision has in a compiled file.
many = torch.rand(60, 4) * 20
many[:, 2:] += many[:, :2]
scores = torch.rand(60)
print(ops.nms(many, scores, 0.3).tolist())
print(ops.batched_nms(many, scores, torch.randint(0, 3, (60,)), 0.3).tolist())
x = torch.randn(2, 6, 16, 20, requires_grad=True)
regions = torch.cat([torch.randint(0, 2, (12, 1)), torch.rand(12, 2) * 10 - 2, torch.rand(12, 2) * 14 + 6], 1)
for name, made in (
    ("align", ops.roi_align(x, regions, (3, 4), 0.5, 2, True)),
    ("align, as many points as places", ops.roi_align(x, regions, (3, 4), 1.0)),
    ("pool", ops.roi_pool(x, regions, (3, 4))),
    ("deform", ops.DeformConv2d(6, 4, 3)(x, torch.randn(2, 18, 14, 18), torch.rand(2, 9, 14, 18))),
):
    (gradient,) = torch.autograd.grad(made.square().sum(), x)
    print(name, tuple(made.shape), f"{made.abs().sum():.2f} {gradient.abs().sum():.2f}")
print(f"{ops.generalized_box_iou(many[:3], many[3:6]).sum():.4f}")
