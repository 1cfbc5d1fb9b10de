"""Small programs of tensors, each compared with torch: views, writes, dtypes and errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = """
torch.ones(2, 2).addmm_(mat1=torch.ones(2, 2), mat2=torch.ones(2, 2))
torch.ones(2).addmv_(mat=torch.ones(2, 2), vec=torch.ones(2))
torch.ones(2, 2).addr_(vec1=torch.ones(2), vec2=torch.ones(2))
torch.ones(2, 2).view(dtype=torch.int32)
torch.ones(2).copy_(other=torch.zeros(2))
torch.randint_like(torch.ones(2), high=5).shape
torch.mean([1.0, 2.0])
torch.mean(np.ones(2))
torch.exp(np.ones(2))
torch.round(2.5)
torch.sort(None)
torch.cumsum("a", 0)
torch.linalg.inv(3)
torch.tensor([4, 3]).add(2.5, alpha=0.5)
torch.addcmul(torch.tensor([4, 3]), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]), value=0.5)
torch.ones(3)[0].lerp_(torch.tensor(0.0), 0.3)
torch.tensor(1.0).add_(1).lerp_(torch.tensor(2.0), 0.3).addcmul_(torch.tensor(2.0), torch.tensor(3.0), value=2.0)
torch.tensor([1e38, -1e38, 3e38]).std()
torch.tensor([1e38, -1e38, float("nan")]).std(), torch.tensor([1.0, float("inf")]).std(), torch.tensor([2.0]).std()
torch.addcmul(torch.ones(4, 4), torch.ones(4, 4), torch.ones(3))
torch.addcdiv(torch.ones(4, 4), torch.ones(2, 4), torch.ones(4))
reversed(torch.arange(3)), reversed(torch.ones(()))
torch.zeros(2, dtype=torch.uint8).fill_(300)
torch.zeros(2, dtype=torch.int64).fill_(1j)
torch.zeros(2, dtype=torch.int32).fill_(2**40)
torch.zeros(2).fill_(1e300)
torch.zeros(2, dtype=torch.float16).fill_(7e4)
set_item(torch.zeros(2, dtype=torch.uint8), 300)
set_item(torch.zeros(2, dtype=torch.int64), 2.7)
set_item(torch.zeros(2, dtype=torch.int64), 1j)
set_item(torch.zeros(2), 1e300)
set_item(torch.zeros(2, dtype=torch.bool), 2)
set_item(torch.zeros(2, dtype=torch.complex64), 2)
torch.tensor(1.0) == pytest.approx(1.0), torch.tensor(1.0) != pytest.approx(2.0), torch.tensor(1.0) == "a", torch.ones(2) != None
""".strip().splitlines()


def set_item(tensor, value):
    tensor[0] = value
    return tensor


SCOPE = {"np": np, "set_item": set_item, "pytest": pytest}


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_answer(program: str) -> None:
    assert answer(retrograd, program, **SCOPE) == answer(pytest.importorskip("torch"), program, **SCOPE)


@pytest.mark.oracle
def test_a_conjugate_that_torch_saved(tmp_path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.tensor([1 + 2j]).conj(), tmp_path / "conjugate.pt")
    assert retrograd.load(tmp_path / "conjugate.pt").tolist() == [1 - 2j]


def test_names_of_the_package_are_complete() -> None:
    names: dict = {}
    exec("from retrograd import *", names)
    assert {"tensor", "add", "cumsum", "topk", "float32", "no_grad", "get_num_threads"} <= names.keys()
    assert {"cumsum", "linalg", "topk", "float32"} <= set(dir(retrograd))
    assert {"Linear", "summary"} <= set(dir(retrograd.nn))
    assert {"grad", "explain", "gradcheck"} <= set(dir(retrograd.autograd))


NUMPY_WORDS = """
import retrograd as torch
x = torch.arange(6.0).view(2, 3)
print(x.sum(axis=0, keepdim=True).tolist(), x.mean(axis=-1, keepdim=True).tolist(), x.var(axis=0, unbiased=False).tolist())
print(torch.sort(x, axis=0, descending=True).values.tolist(), torch.sum(x, axis=0, keepdims=True).tolist())
"""


def test_numpy_words_beside_others() -> None:
    """In a fresh process, where public functions have their quick form."""
    found = subprocess.run([sys.executable, "-c", NUMPY_WORDS], capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [
        "[[3.0, 5.0, 7.0]] [[1.0], [4.0]] [2.25, 2.25, 2.25]",
        "[[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]] [[3.0, 5.0, 7.0]]",
    ]
