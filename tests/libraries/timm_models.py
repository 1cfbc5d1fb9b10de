"""timm: models of 20 kinds, forward and backward; its optimizers, schedules, mixing of images and averaged weights."""

import numpy as np
import timm
import torch
from timm.data import Mixup
from timm.loss import LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import ModelEmaV3

MODELS = """convnext_atto mobilenetv3_small_050 edgenext_xx_small ghostnet_050 regnetx_002 mobilevit_xxs xcit_nano_12_p16_224 pit_ti_224
levit_128s visformer_tiny pvt_v2_b0 tinynet_e lcnet_035 efficientformerv2_s0 vit_tiny_patch16_224
eva02_tiny_patch14_224 mambaout_femto starnet_s1 resnetv2_18 repghostnet_050"""
OPTIMIZERS = (
    "adafactorbv adamp adan adopt kron lamb laprop lion madgradw mars muon nadamw novograd rmsproptf sgdp cadamw"
)

torch.set_default_dtype(torch.float64)
for name in MODELS.split():
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=4)
    size = model.default_cfg["input_size"][-1] if model.default_cfg.get("fixed_input_size") else 64
    torch.manual_seed(1)
    out = model(torch.randn(2, 3, size, size))
    (out - 1).square().mean().backward()
    gradient = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(name, f"{out.abs().sum().item():.4e} {gradient:.4e}")

torch.manual_seed(0)
x, y = torch.randn(16, 3, 32, 32), torch.randint(0, 5, (16,))
for name in OPTIMIZERS.split():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(900, 5)
    )
    optimizer = create_optimizer_v2(model, name, lr=1e-3, weight_decay=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        loss = LabelSmoothingCrossEntropy()(model(x), y)
        loss.backward()
        optimizer.step()
    print(name, f"{loss.item():.5f} {sum(p.abs().sum().item() for p in model.parameters()):.4f}")

torch.manual_seed(0)
np.random.seed(0)
model = timm.create_model("resnet10t", num_classes=5)
optimizer = create_optimizer_v2(model, "adamw", lr=1e-3, layer_decay=0.8)
schedule, _ = create_scheduler_v2(optimizer, "cosine", num_epochs=3, warmup_epochs=1)
averaged = ModelEmaV3(model, 0.9)
mix = Mixup(0.8, 1.0, num_classes=5)
for epoch in range(2):
    mixed, targets = mix(x.clone(), y)
    loss = SoftTargetCrossEntropy()(model(mixed), targets.double())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    averaged.update(model)
    schedule.step(epoch + 1)
    print(f"{loss.item():.5f}", [round(group["lr"], 6) for group in optimizer.param_groups[:3]])
print(f"{averaged.module(x).sum().item():.4f}")
