"""fastai: its Learner with schedules and metrics, tensors of own classes, pictures changed in batches, saved weights."""

import torch
from fastai.vision.all import (
    AdaptiveAvgPool,
    ConvLayer,
    CrossEntropyLossFlat,
    DataLoaders,
    DynamicUnet,
    Flatten,
    Learner,
    Pipeline,
    TensorImage,
    TensorMask,
    accuracy,
    aug_transforms,
    nn,
    ranger,
    set_seed,
    xresnet18,
)  # fmt: skip

set_seed(0, True)
x, y = torch.randn(48, 1, 12, 12), torch.randint(0, 3, (48,))
train, held = list(zip(x[:32], y[:32], strict=True)), list(zip(x[32:], y[32:], strict=True))
loaders = DataLoaders.from_dsets(train, held, bs=8, shuffle=False, num_workers=0, device="cpu")
layers = [ConvLayer(1, 4, stride=2), ConvLayer(4, 8, stride=2), AdaptiveAvgPool(), Flatten(), nn.Linear(8, 3)]
learner = Learner(loaders, nn.Sequential(*layers), loss_func=CrossEntropyLossFlat(), metrics=accuracy)
with learner.no_bar(), learner.no_logging():
    learner.fit_one_cycle(2, 1e-2)
    print([[round(float(one), 3) for one in row] for row in learner.recorder.values])
    learner.opt_func = ranger
    learner.fit_flat_cos(1, 1e-3)
    print([round(float(one), 3) for one in learner.recorder.values[-1]])
    learner.save("weights")
    learner.load("weights")
    predicted, wanted = learner.get_preds()
    print(f"{predicted[:, 0].sum().item():.3f}", tuple(wanted.shape))
picture = TensorImage(torch.rand(3, 8, 8))
print(
    type(picture + 1).__name__,
    type(picture[0]).__name__,
    type(picture.float()).__name__,
    f"{picture.mean().item():.4f}",
)
set_seed(1)
batch = (TensorImage(torch.rand(2, 3, 16, 16)), TensorMask(torch.randint(0, 2, (2, 16, 16))))
changed = Pipeline(aug_transforms(size=12, flip_vert=True))(batch)
print([(type(one).__name__, tuple(one.shape)) for one in changed], f"{changed[0].mean().item():.4f}")
unet = DynamicUnet(nn.Sequential(*list(xresnet18().children())[:5]), 2, (32, 32))
print(tuple(unet(torch.ones(1, 3, 32, 32)).shape))
