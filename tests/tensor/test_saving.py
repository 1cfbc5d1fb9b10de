"""Saving, loading, pickling and copying: values, strides and shared memory survive, also from and to torch."""

from __future__ import annotations

import _pickle
import copy
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrograd


def everything(library: Any) -> dict[str, Any]:
    """Return containers with all kinds of tensors, some on one memory."""
    x = library.arange(6.0).reshape(2, 3)
    return {
        "base": x,
        "view": x.t()[1:],
        "sliced": x[:, ::2],
        "expanded": library.ones(3).expand(2, 3),
        "grad": x.clone().requires_grad_(),
        "half": [x.half(), x.bfloat16()],
        "whole": (x.long(), x.int(), x.bool(), x.byte()),
        "complex": library.tensor([1 + 2j]),
        "empty": library.zeros(0, 3),
        "scalar": library.tensor(3.0),
        "ordered": OrderedDict(k=x.double()),
        "others": [library.Size([1, 2]), library.float32, library.device("cpu"), 3, None, "text", {1, 2}],
    }


def described(value: Any) -> Any:
    if hasattr(value, "stride") and hasattr(value, "dtype"):
        place = value.stride(), value.storage_offset()
        return str(value.dtype), tuple(value.shape), place, value.requires_grad, str(value.tolist())
    if isinstance(value, dict):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return [described(one) for one in value]
    return str(value)


def through_file(writer: Any, reader: Any) -> Any:
    buffer = io.BytesIO()
    writer.save(everything(writer), buffer)
    buffer.seek(0)
    return reader.load(buffer)


WAYS: dict[str, Callable[[], Any]] = {
    "save": lambda: through_file(retrograd, retrograd),
    "deepcopy": lambda: copy.deepcopy(everything(retrograd)),
    "pickle": lambda: pickle.loads(pickle.dumps(everything(retrograd))),
    "to torch": lambda: through_file(retrograd, pytest.importorskip("torch")),
    "from torch": lambda: through_file(pytest.importorskip("torch"), retrograd),
}


@pytest.mark.parametrize("way", [pytest.param(w, marks=pytest.mark.oracle) if "torch" in w else w for w in WAYS])
def test_everything_survives(way: str) -> None:
    result = WAYS[way]()
    assert described(result) == described(everything(retrograd))
    result["base"][0, 1] = 50
    assert result["view"][0, 0].item() == 50  # one memory still


def test_parameters(tmp_path: Path) -> None:
    parameter = retrograd.Parameter(retrograd.ones(2))
    retrograd.save({"weight": parameter}, tmp_path / "model.pt")
    loaded = retrograd.load(tmp_path / "model.pt", map_location="cpu")["weight"]
    assert isinstance(loaded, retrograd.Parameter)
    assert loaded.requires_grad
    assert isinstance(copy.deepcopy(parameter), retrograd.Parameter)
    assert isinstance(pickle.loads(pickle.dumps(parameter)), retrograd.Parameter)


class LikeDill:
    """Stands for a module such as dill, whose pickler is written in Python."""

    class Pickler(pickle._Pickler):
        """A pickler."""

    Unpickler = pickle.Unpickler


class Unsafe:
    """A class of the user."""


def test_weights_only() -> None:
    buffer = io.BytesIO()
    retrograd.save(Unsafe(), buffer)
    buffer.seek(0)
    name = f"{Unsafe.__module__}.Unsafe"
    with pytest.raises(pickle.UnpicklingError, match=f"Unsupported global: GLOBAL {name} was not an allowed global"):
        retrograd.load(buffer)
    buffer.seek(0)
    assert isinstance(retrograd.load(buffer, weights_only=False), Unsafe)
    buffer.seek(0)
    with retrograd.serialization.safe_globals([Unsafe]):
        assert isinstance(retrograd.load(buffer), Unsafe)


def test_refused_files(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not a ZIP archive"):
        retrograd.load(io.BytesIO(b"PK\x03\x04"))
    with pytest.raises(FileNotFoundError):
        retrograd.load(tmp_path / "missing.pt")
    with pytest.raises(AttributeError, match="seekable"):
        retrograd.load(5)
    with pytest.raises(AttributeError, match="file-like object with a 'write' attribute"):
        retrograd.save(retrograd.ones(2), 5)


def saved_and_loaded(library: Any, value: Any, **options: Any) -> Any:
    """Save a value and load it again."""
    buffer = io.BytesIO()
    library.save(value, buffer)
    buffer.seek(0)
    return library.load(buffer, **options)


class Tagged(retrograd.Tensor):
    """A tensor of the user, with a slot."""

    __slots__ = ("tag",)


def test_attributes() -> None:
    tensor, parameter = retrograd.ones(3), retrograd.Parameter(retrograd.ones(2))
    tensor.foo, parameter.foo = "bar", [1, 2]
    assert saved_and_loaded(retrograd, tensor).foo == "bar"
    assert saved_and_loaded(retrograd, parameter).foo == [1, 2]
    layer = retrograd.nn.Linear(2, 2)
    layer.weight.lr_scale = 0.5
    assert saved_and_loaded(retrograd, layer, weights_only=False).weight.lr_scale == 0.5
    buffer = retrograd.nn.Buffer(retrograd.ones(1))
    assert isinstance(saved_and_loaded(retrograd, buffer), retrograd.nn.Buffer)
    copied = copy.copy(tensor)
    assert copied.foo == "bar"
    assert copied.data_ptr() == tensor.data_ptr()


def test_a_subclass_and_its_slots() -> None:
    tensor = retrograd.ones(2).as_subclass(Tagged)
    tensor.tag, tensor.other = 3, 4
    loaded = saved_and_loaded(retrograd, tensor, weights_only=False)
    assert (type(loaded), loaded.tag, loaded.other) == (Tagged, 3, 4)
    with pytest.raises(pickle.UnpicklingError, match="Tagged was not an allowed global"):
        saved_and_loaded(retrograd, tensor)


def kinds_of_objects(library: Any) -> dict[str, Any]:
    """Return what programs put into files, by name: tensors with attributes, buffers, results with names, scalers, storages."""
    tensor, parameter = library.ones(2), library.nn.Parameter(library.ones(2))
    tensor.foo = parameter.foo = 1
    return {
        "tensor with an attribute": tensor,
        "parameter with an attribute": parameter,
        "buffer": library.nn.Buffer(library.ones(1)),
        "conjugate": library.tensor([1 + 2j]).conj(),
        "negated": library.tensor([1 + 2j]).conj().imag,
        "version": library.torch_version.TorchVersion("2.13.0"),
        "named result": library.max(library.tensor([[1.0, 2.0]]), 1),
        "scaler": library.amp.GradScaler("cpu", init_scale=8.0),
        "bytes": library.arange(3).untyped_storage(),
        "uninitialised": library.nn.parameter.UninitializedParameter(),
        "hashes": library.tensor([1, 2], dtype=library.uint64),
    }


def seen(value: Any) -> Any:
    """Return what a user sees of a loaded object."""
    name = type(value).__name__
    if name == "GradScaler":
        return value.state_dict()
    if name == "UninitializedParameter":
        return name
    if name in ("UntypedStorage", "TypedStorage"):
        return name, str(value.dtype), value._untyped_storage.tolist()
    if name in ("Tensor", "Parameter"):
        marks = getattr(value, "foo", None), getattr(value, "_is_buffer", None)
        return name, str(value.dtype), value.requires_grad, value.tolist(), marks
    return name, described(value)


@pytest.mark.oracle
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", kinds_of_objects(retrograd))
def test_each_library_reads_the_other(kind: str, old: bool) -> None:
    torch = pytest.importorskip("torch")
    if old and kind in ("bytes", "hashes"):
        pytest.skip("torch does not read bytes from its old files")
    found = []
    for writer in (torch, retrograd):
        buffer = io.BytesIO()
        writer.save(kinds_of_objects(writer)[kind], buffer, _use_new_zipfile_serialization=not old)
        for reader in (torch, retrograd):
            buffer.seek(0)
            found.append(seen(reader.load(buffer, weights_only=False)))
    assert found[1:] == found[:1] * 3


def test_loaded_tensors_that_share_are_saved_sharing() -> None:
    base = retrograd.arange(6.0)
    once = saved_and_loaded(retrograd, [base, base[2:]])
    twice = saved_and_loaded(retrograd, once)
    twice[0][3] = 50
    assert twice[1][1].item() == 50


@pytest.mark.parametrize("module", [pickle, _pickle, LikeDill])
def test_pickle_modules(module: Any) -> None:
    value = everything(retrograd)
    for options in ({}, {"pickle_module": module}, {"weights_only": False}):
        buffer = io.BytesIO()
        retrograd.save(value, buffer, pickle_module=module)
        buffer.seek(0)
        assert described(retrograd.load(buffer, **options)) == described(value)


def test_one_memory_of_two_types() -> None:
    tensor = retrograd.ones(2)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        retrograd.save([tensor, tensor.view(retrograd.int32)], io.BytesIO())
    copied, viewed = copy.deepcopy([tensor, tensor.view(retrograd.int32)])
    viewed.zero_()
    assert copied.tolist() == [0, 0]


def test_only_leaves_are_copied() -> None:
    y = retrograd.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)
    x = retrograd.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [3, 3]


def test_a_copied_array_is_an_array() -> None:
    array = retrograd.ones(2).numpy()
    tensor = retrograd.from_numpy(array)
    _, copied = copy.deepcopy([tensor, array])
    assert type(copied) is type(array)
