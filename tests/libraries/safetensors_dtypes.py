"""safetensors: a file of every dtype that the format has, read back whole, in slices and as bytes."""

import hashlib
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

NAMES = "float16 bfloat16 float32 float64 uint8 int8 int16 int32 int64 bool uint16 uint32 uint64 complex64"
NAMES += " float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"

tensors = {name: torch.tensor([[1.0, 2, 3], [0, 4, 100]]).to(getattr(torch, name)) for name in NAMES.split()}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "dtypes.safetensors")
    save_file(tensors, path, metadata={"format": "pt"})
    print(hashlib.sha256(path.read_bytes()).hexdigest())  # the same bytes from both libraries
    for name, tensor in sorted(load_file(path).items()):
        print(name, tensor.dtype, tensor.to(torch.complex128).real.tolist())
    with safe_open(path, framework="pt") as file:
        for name in sorted(file.keys()):
            part = file.get_slice(name)[:, 1:]
            print(name, part.dtype, tuple(part.shape), part.to(torch.float32).tolist() if name != "complex64" else "")
