"""State dicts of modules and optimizers, saved and loaded."""

import io
from typing import Any

import torch
from torch import Tensor, nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model(torch.randn(4, 2)).sum().backward()
optimizer.step()
state: dict[str, Any] = model.state_dict()
print(list(state), state["0.weight"].shape)
file = io.BytesIO()
torch.save({"model": state, "optimizer": optimizer.state_dict(), "epoch": 3}, file)
file.seek(0)
checkpoint = torch.load(file, map_location="cpu", weights_only=True)
fresh = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
result = fresh.load_state_dict(checkpoint["model"])
print(result, checkpoint["epoch"], result.missing_keys)
again = torch.optim.Adam(fresh.parameters())
again.load_state_dict(checkpoint["optimizer"])
print(again.param_groups[0]["lr"])
partial: dict[str, Tensor] = {name: value for name, value in state.items() if name.startswith("0.")}
missing = fresh.load_state_dict(partial, strict=False)
print(len(missing.missing_keys), missing.unexpected_keys)
for name, buffer in fresh.named_buffers():
    print(name, buffer.dtype)
print(fresh.get_parameter("0.bias").requires_grad, fresh.get_submodule("1").training)
