"""einops: rearrangements, reductions, layers with weights, packing."""

import torch
from einops import einsum, pack, rearrange, reduce, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce

torch.manual_seed(0)
x = torch.randn(2, 3, 8, 8)
print(round(rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2)[0, 3].sum().item(), 4))
print([round(v, 4) for v in reduce(x, "b c h w -> b c", "max").flatten().tolist()[:3]])
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3),
    Rearrange("b c h w -> b (h w) c"),
    EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=4, d=5),
    Reduce("b t d -> b d", "mean"),
)
y = model(x)
y.sum().backward()
print([round(p.grad.norm().item(), 4) for p in model.parameters()])
packed, shape = pack([x, torch.ones(2, 5)], "b *")
print(packed.shape, [u.shape for u in unpack(packed, shape, "b *")])
print([round(v, 3) for v in einsum(x, x, "b c h w, b d h w -> c d")[0].tolist()])
