"""Files and storages of tensors on a GPU: they go back to where they were, or to where `map_location` says."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import retrograd as torch

pytestmark = pytest.mark.gpu

if not torch.cuda.is_available():
    pytest.skip("needs CuPy and a GPU", allow_module_level=True)


def through_file(value: Any, new: bool = True, **options: Any) -> Any:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=new)
    buffer.seek(0)
    return torch.load(buffer, **options)


@pytest.mark.parametrize("new", [True, False])
def test_devices_survive(new: bool) -> None:
    base = torch.arange(6.0, device="cuda")
    made = {"base": base, "part": base[2:], "turned": base.view(2, 3).t(), "here": torch.ones(2)}
    loaded = through_file(made, new)
    assert [str(one.device) for one in loaded.values()] == ["cuda:0", "cuda:0", "cuda:0", "cpu"]
    loaded["base"][3] = 50
    assert loaded["part"].tolist() == [2, 50, 4, 5]
    assert loaded["turned"].tolist() == [[0, 50], [1, 4], [2, 5]]
    there = through_file(made, new, map_location="cpu")
    assert {str(one.device) for one in there.values()} == {"cpu"}
    assert there["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert str(through_file(torch.ones(2), new, map_location="cuda").device) == "cuda:0"


def test_parameters_and_pickles() -> None:
    layer = torch.nn.Linear(2, 2).cuda()
    layer.weight.tag = 1
    loaded = through_file(layer, weights_only=False)
    assert loaded.weight.is_cuda
    assert loaded.weight.tag == 1
    tensor = torch.arange(3.0, device="cuda")
    for made in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), copy.copy(tensor)):
        assert (str(made.device), made.tolist()) == ("cuda:0", [0, 1, 2])


def test_storages() -> None:
    tensor = torch.arange(3.0, device="cuda")
    storage = tensor.untyped_storage()
    assert (storage.nbytes(), str(storage.device), storage.is_cuda) == (12, "cuda:0", True)
    assert storage.cpu().tolist() == torch.arange(3.0).untyped_storage().tolist()
    assert storage.cpu().cuda().device == storage.device
    storage.fill_(0)
    assert tensor.tolist() == [0, 0, 0]
    assert torch.zeros(1, device="cuda").set_(storage).tolist() == [0, 0, 0]
