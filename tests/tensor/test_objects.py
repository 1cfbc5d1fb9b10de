"""The Tensor as an object: attributes, conversion, copying, pickling, subclasses."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import retrograd as torch


def test_attributes_of_a_fresh_tensor():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.shape == (2, 2)
    assert x.size() == torch.Size([2, 2])
    assert x.size(-1) == 2
    assert (x.ndim, x.dim(), x.numel(), x.nelement()) == (2, 2, 4, 4)
    assert x.dtype is torch.float32
    assert x.device == torch.device("cpu")
    assert (x.requires_grad, x.is_leaf, x.grad, x.grad_fn) == (False, True, None, None)
    assert (x.stride(), x.is_contiguous(), x.storage_offset()) == ((2, 1), True, 0)
    assert (x.element_size(), x.nbytes, x.is_floating_point(), x.is_complex()) == (4, 16, True, False)
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]


def test_numbers_leave_as_python_numbers():
    assert torch.tensor(2.5).item() == 2.5
    assert type(torch.tensor(3).item()) is int
    assert type(torch.tensor(True).item()) is bool
    assert torch.tensor(1 + 2j).item() == 1 + 2j
    assert torch.tensor(1.5, dtype=torch.bfloat16).item() == 1.5
    assert float(torch.tensor([2.0])) == 2.0
    assert int(torch.tensor(2.9)) == 2
    assert [10, 20, 30][torch.tensor(1)] == 20
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.ones(2).item()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        bool(torch.ones(2))


def test_numpy_shares_memory_both_ways():
    x = torch.zeros(3)
    x.numpy()[1] = 5
    assert x.tolist() == [0.0, 5.0, 0.0]
    array = np.arange(3.0)
    y = torch.from_numpy(array)
    y.mul_(2)
    assert array.tolist() == [0.0, 2.0, 4.0]
    assert torch.tensor(array).numpy() is not array
    scalar = torch.tensor(1.0)
    scalar.numpy()[...] = 7  # a 0-d value has memory as soon as somebody looks at it
    assert scalar.item() == 7.0


def test_numpy_refuses_what_requires_grad():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    assert np.asarray(x.detach()).tolist() == [1.0, 1.0]


def test_detach_shares_memory_and_version_but_data_only_memory():
    x = torch.ones(2)
    d, raw = x.detach(), x.data
    d.add_(1)
    raw.add_(1)
    assert x.tolist() == [3.0, 3.0]
    assert (x._version, d._version, raw._version) == (1, 1, 1)
    raw.add_(1)
    assert (x._version, raw._version) == (1, 2)


def test_data_can_be_replaced_under_a_leaf():
    x = torch.ones(2, requires_grad=True)
    x.data = torch.tensor([3.0, 4.0])
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 8.0]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64", "int64", "bool"])
def test_pickle_and_deepcopy_keep_values_and_flags(dtype, requires_grad):
    dtype = getattr(torch, dtype)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        pytest.skip("integers cannot require grad")
    x = torch.tensor([[0, 1], [2, 3]], dtype=dtype, requires_grad=requires_grad)
    x.note = "kept"
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y is not x
        assert y.dtype is dtype
        assert y.tolist() == x.tolist()
        assert y.requires_grad == requires_grad
        assert y.note == "kept"
        y.detach().zero_()
        assert x.tolist() != y.tolist()


def test_deepcopy_copies_the_gradient_and_refuses_non_leaves():
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [3.0, 3.0]
    assert y.grad is not x.grad
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_shallow_copy_shares_memory():
    x = torch.ones(2)
    y = copy.copy(x)
    y.add_(1)
    assert x.tolist() == [2.0, 2.0]


def test_users_may_set_attributes_and_weak_references():
    import weakref

    x = torch.ones(2)
    x.colour = "blue"
    reference = weakref.ref(x)
    assert reference().colour == "blue"
    del x
    assert reference() is None


def test_parameter_is_a_tensor_that_requires_grad():
    p = torch.Parameter(torch.ones(2))
    assert isinstance(p, torch.Tensor)
    assert p.requires_grad
    assert p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p * 2) is torch.Tensor
    assert copy.deepcopy(p).requires_grad
    assert type(pickle.loads(pickle.dumps(p))) is type(p)
    assert not torch.Parameter(torch.ones(2), requires_grad=False).requires_grad


class Metres(torch.Tensor):
    """A subclass that does nothing special."""


class Logged(torch.Tensor):
    """A subclass that sees every call."""

    calls: list = []  # noqa: RUF012 - shared on purpose

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_results_keep_the_subclass():
    x = torch.ones(3).as_subclass(Metres)
    assert type(x + 1) is Metres
    assert type(1 + x) is Metres
    assert type(torch.add(x, x)) is Metres
    assert type(x.sum()) is Metres
    assert type(torch.cat([x, x])) is Metres
    assert type(torch.ones(3) * x) is Metres
    x.requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_torch_function_sees_functions_methods_and_operators():
    x = torch.ones(3).as_subclass(Logged)
    Logged.calls.clear()
    torch.sum(x)
    x.exp()
    _ = x * 2
    assert Logged.calls == ["sum", "exp", "mul"]


def test_a_foreign_class_may_answer():
    class Answer:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return f"{func.__name__} answered"

    assert torch.add(torch.ones(2), Answer()) == "add answered"
    assert torch.sum(Answer()) == "sum answered"


def test_legacy_constructor():
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor().shape == (0,)


def test_membership_equality_and_hash():
    x = torch.tensor([1.0, 2.0])
    assert 2.0 in x
    assert 3.0 not in x
    assert (x == 2.0).tolist() == [False, True]
    assert (x == "two") is False
    assert len({x, x, torch.tensor([1.0, 2.0])}) == 2
    assert torch.equal(x, torch.tensor([1.0, 2.0]))
    assert torch.allclose(x, x + 1e-9)


def test_a_new_thread_and_an_empty_import_are_quiet():
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import threading, retrograd as torch\n"
        "def work(): print((torch.tensor([0.0]) / 0).item(), torch.zeros(1).log().item())\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["nan", "-inf"]
    assert done.stderr == ""


def test_methods_properties_and_indexing_keep_the_subclass():
    s = torch.ones(3, 3).as_subclass(Metres)
    for result in (
        s[0],
        s[:, 1:],
        s[s > 0],
        1 - s,
        2 / s,
        s**2,
        s.T,
        s.data,
        s.detach(),
        s.view(9),
        s.to(torch.float64),
    ):
        assert type(result) is Metres
    assert type(torch.ones(3, 3) @ s) is Metres
    assert type(torch.zeros_like(s)) is Metres
    s += 1
    s[0] = 5.0
    assert type(s) is Metres
    assert s[0].tolist() == [5.0, 5.0, 5.0]
    assert (len(s), s.size(0), s[1, 1].item()) == (3, 3, 2.0)


def test_torch_function_sees_methods_and_indexing():
    x = torch.ones(3).as_subclass(Logged)
    Logged.calls.clear()
    _ = x[0]
    _ = 1 - x
    x.view(3, 1)
    _ = x.T if x.ndim == 2 else x.data
    assert Logged.calls == ["__getitem__", "__rsub__", "view", "__get__"]
