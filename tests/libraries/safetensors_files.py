"""safetensors: tensors of many dtypes written, read back whole and in parts, and models with shared weights."""

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
tensors = {
    "float32": torch.randn(3, 4),
    "float64": torch.randn(2).double(),
    "half": torch.arange(6).reshape(2, 3).half(),
    "bfloat16": torch.tensor([1.5, -2.0, 3.25]).bfloat16(),
    "int64": torch.arange(5),
    "int8": torch.tensor([-1, 2], dtype=torch.int8),
    "uint8": torch.arange(4, dtype=torch.uint8),
    "bool": torch.tensor([True, False]),
    "empty": torch.zeros(0, 3),
    "number": torch.tensor(2.5),
}
save_file(tensors, "many.safetensors", metadata={"made": "here"})
found = load_file("many.safetensors")
for name in sorted(found):
    print(name, found[name].dtype, tuple(found[name].shape), torch.equal(found[name], tensors[name]))
again = load(save(tensors))
print("bytes", all(torch.equal(again[name], tensors[name]) for name in tensors))

with safe_open("many.safetensors", framework="pt") as file:
    print(sorted(file.keys()), file.metadata())
    part = file.get_slice("float32")
    print(part.get_shape(), torch.equal(part[1:, :2], tensors["float32"][1:, :2]))
    print("half", file.get_tensor("half").tolist())

try:
    save_file({"a": torch.arange(4)[::2]}, "strided.safetensors")
except ValueError as error:
    print(str(error)[:60])


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 3)
        self.head = torch.nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight


first, second = Tied(), Tied()
save_model(first, "tied.safetensors")
print(load_model(second, "tied.safetensors"), torch.equal(first.head.weight, second.head.weight))
print("shared", second.head.weight is second.embedding.weight, len(load_file("tied.safetensors")))
