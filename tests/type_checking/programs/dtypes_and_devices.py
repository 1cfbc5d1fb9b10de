"""dtypes, devices and conversions."""

from typing import assert_type

import numpy as np
import torch
from torch import Tensor, nn

device = torch.device("cuda" if torch.cuda.is_available() and False else "cpu")
x = torch.tensor([[1.5, 2.5]], dtype=torch.float64, device=device)
assert_type(x.dtype, torch.dtype)
assert_type(x.device, torch.device)
assert_type(x.to(torch.float32), Tensor)
print(x.dtype, x.device.type, x.to("cpu", torch.float16).dtype, x.to(device).float().dtype, x.half().dtype, x.long())
print(
    x.to(torch.int32),
    x.type(torch.float32).dtype,
    x.type(),
    x.is_floating_point(),
    x.dtype.is_complex,
    x.element_size(),
)
array = x.numpy()
assert_type(torch.from_numpy(np.ones(2)), Tensor)
print(array.dtype, torch.from_numpy(np.arange(3)), torch.as_tensor([1, 2]).dtype, torch.asarray(array).shape)
print(torch.finfo(torch.float32).eps, torch.iinfo(torch.int8).max, torch.promote_types(torch.int32, torch.float16))
print(torch.zeros_like(x, dtype=torch.bool), torch.result_type(x, 1), torch.can_cast(torch.float32, torch.int32))
model = nn.Linear(2, 1).to(device=device, dtype=torch.float64)
print(model(x).dtype, model.half().weight.dtype, next(model.float().parameters()).device)
torch.set_default_dtype(torch.float64)
print(torch.zeros(1).dtype, torch.get_default_dtype())
torch.set_default_dtype(torch.float32)
z = torch.complex(torch.ones(2), torch.zeros(2))
print(z.dtype, z.real, torch.view_as_real(z).shape, z.abs().dtype, torch.tensor(3).item() + 1)
with torch.device("cpu"):
    print(torch.ones(1).device)
