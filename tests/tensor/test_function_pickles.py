"""Public functions and methods are pickled by their public names, and cross between the libraries in both directions."""

from __future__ import annotations

import copy
import importlib
import io
import operator
import pickle
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import _absent
from retrograd.tensor._files.loading import _trusting_class
from retrograd.tensor._files.saving import torch_name

SPACES = ("", "nn.functional", "linalg", "fft", "special", "nn.init", "nn.utils", "Tensor")
# What torch has in other modules than this package does.
NOT_IN_TORCH = {
    *(
        f"Tensor.{name}" for name in ("__torch_dispatch__", "_is_view", "_make_wrapper_subclass", "_use_count")
    ),  # in C++
    "nn.utils.clip_grads_with_norm_",  # torch's own says `_clip_grads_with_norm_`
    "nn.utils.get_total_norm",
    "is_anomaly_enabled",  # in C++, without a home among the modules
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_anomaly_check_nan_enabled",
    "set_anomaly_enabled",
}


def space_of(library: str, space: str) -> Any:
    package = importlib.import_module(library)
    if space == "Tensor":
        return package.Tensor
    return importlib.import_module(f"{library}.{space}") if space else package


def callables(library: str, space: str) -> dict[str, Any]:
    """Return the public functions and classes of a module, and all methods of Tensor, by their names."""
    holder = space_of(library, space)
    listed = getattr(holder, "__all__", None) or dir(holder)
    named = {name: getattr(holder, name, None) for name in listed if space == "Tensor" or not name.startswith("_")}
    absent = _absent.table().get(f"torch.{space}".rstrip("."), {})  # names that only say what they need
    kept = {name: value for name, value in named.items() if callable(value) and name not in {"__class__", *absent}}
    return {f"{space}.{name}".lstrip("."): value for name, value in kept.items()}


def saved(library: Any, value: Any) -> io.BytesIO:
    file = io.BytesIO()
    library.save(value, file)
    file.seek(0)
    return file


def is_same(made: Any, value: Any) -> bool:
    return made is value or bool(made == value)  # bound methods of a class are made anew at each look


@pytest.mark.parametrize("space", SPACES)
def test_every_public_function_is_pickled(space: str) -> None:
    failed = []
    for name, value in callables("retrograd", space).items():
        try:
            made = [pickle.loads(pickle.dumps(value, protocol)) for protocol in (2, 5)]
            made += [copy.deepcopy(value), retrograd.load(saved(retrograd, value), weights_only=False)]
        except Exception as error:
            failed.append((name, str(error)))
            continue
        if not all(is_same(one, value) for one in made):
            failed.append((name, "another object"))
    assert not failed


def test_a_function_with_two_homes_is_one_object() -> None:
    for home in ("serialization", "random", "utils.dlpack"):
        module = importlib.import_module(f"retrograd.{home}")
        for name in {*module.__all__} & {*retrograd.__all__}:
            assert getattr(module, name) is getattr(retrograd, name), name


@pytest.mark.oracle
@pytest.mark.parametrize("space", SPACES)
def test_torch_has_every_name_that_is_saved(space: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = callables("torch", space)
    failed = []
    for name, value in callables("retrograd", space).items():
        known = torch_name(value)
        if known is None or name not in theirs or name in NOT_IN_TORCH:
            continue
        try:
            found = operator.attrgetter(known.name)(importlib.import_module(known.module))
        except (AttributeError, ModuleNotFoundError) as error:
            failed.append((name, str(error)))
            continue
        if not callable(found):
            failed.append((name, repr(found)))
    assert not failed
    assert torch is not retrograd


@pytest.mark.oracle
@pytest.mark.parametrize("space", SPACES)
def test_every_function_that_torch_saves_is_read(space: str) -> None:
    torch = pytest.importorskip("torch")
    theirs, failed = callables("torch", space), []
    for name, value in callables("retrograd", space).items():
        if name not in theirs:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file = saved(torch, theirs[name])
        except Exception:  # torch cannot pickle it, either
            continue
        try:
            made = retrograd.load(file, weights_only=False)
        except Exception as error:
            failed.append((name, str(error)))
            continue
        if not is_same(made, value) and not callable(made):
            failed.append((name, repr(made)))
    assert not failed


def test_names_are_public() -> None:
    assert (retrograd.tanh.__module__, retrograd.tanh.__qualname__) == ("retrograd", "tanh")
    assert (retrograd.Tensor.add_.__module__, retrograd.Tensor.add_.__qualname__) == ("retrograd", "Tensor.add_")
    assert retrograd.Tensor.cpu.__name__ == "cpu"
    with retrograd.as_torch():
        assert {retrograd.tanh.__module__, retrograd.cdist.__module__, retrograd.Tensor.add_.__module__} == {"torch"}
        assert retrograd.Tensor.backward.__module__ == "torch"
        assert retrograd.linalg.LinAlgError.__module__ == "torch._C"
    assert {retrograd.tanh.__module__, retrograd.cdist.__module__, retrograd.Tensor.add_.__module__} == {"retrograd"}
    assert retrograd.Tensor.backward.__module__ == "retrograd.tensor._tensor"
    assert retrograd.linalg.LinAlgError.__module__ == "retrograd._C"


def test_local_functions_are_refused_when_saved() -> None:
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        saved(retrograd, lambda: None)

    def lost() -> None:
        pass

    lost.__module__, lost.__qualname__ = "retrograd", "lost"
    with pytest.raises(pickle.PicklingError, match="lost"):
        saved(retrograd, lost)


# ---- whole objects ----
def state_of(library: Any) -> dict[str, Any]:
    generator = library.Generator().manual_seed(3)
    library.rand(2, generator=generator)
    optimizer = library.optim.SGD([library.nn.Parameter(library.ones(1))], lr=0.1, momentum=0.9)
    cyclic = partial(library.optim.lr_scheduler.CyclicLR, optimizer, 0.1, 0.2, 3, gamma=0.9)
    schedules = [cyclic(mode=mode) for mode in ("triangular", "triangular2", "exp_range")]
    optimizer.step()
    for schedule in schedules:
        schedule.step()
    return {
        "generator": generator,
        "functions": [library.tanh, library.softmax, library.einsum, library.Tensor.add_, library.nn.functional.gelu],
        "layout": library.strided,
        "sampler": library.utils.data.RandomSampler(range(5), generator=library.Generator().manual_seed(1)),
        "device": library.device("cpu"),
        "dtype": library.bfloat16,
        "encoder": library.nn.TransformerEncoderLayer(4, 1, 8, activation="gelu", dropout=0.0),
        "schedules": schedules,
        "parallel": library.nn.DataParallel(library.nn.Linear(1, 1)),
    }


def rounded(values: list[float]) -> list[float]:
    return [round(value, 5) for value in values]


def seen(library: Any, state: dict[str, Any]) -> list[Any]:
    tanh, softmax, einsum, add_, gelu = state["functions"]
    x = library.tensor([0.5, -1.0])
    rates = []
    for schedule in state["schedules"]:
        for _ in range(7):
            schedule.optimizer.step()
            schedule.step()
        rates += schedule.get_last_lr()
    return [
        library.rand(3, generator=state["generator"]).tolist(),
        [rounded(f(x).ravel().tolist()) for f in (tanh, partial(softmax, dim=0), partial(einsum, "i->"), gelu)],
        add_(x, 1).tolist(),
        [repr(state[name]) for name in ("layout", "device", "dtype")],
        list(state["sampler"]),
        rounded(state["encoder"].activation(library.ones(1)).tolist()),
        rounded(rates),
        type(state["parallel"]).__name__,
    ]


@pytest.mark.oracle
@pytest.mark.parametrize("protocol", [2, 5])
def test_whole_objects_cross(protocol: int) -> None:
    torch = pytest.importorskip("torch")
    retrograd.manual_seed(0)
    for writer in (torch, retrograd):
        file = io.BytesIO()
        writer.save(state_of(writer), file, pickle_protocol=protocol)
        shown = []
        for reader in (torch, retrograd):
            file.seek(0)
            shown.append(seen(reader, reader.load(file, weights_only=False)))
        assert shown[0] == shown[1]
        assert shown[0] == seen(writer, state_of(writer))


@pytest.mark.oracle
def test_layouts_are_safe() -> None:
    torch = pytest.importorskip("torch")
    for writer in (torch, retrograd):
        for reader in (torch, retrograd):
            assert reader.load(saved(writer, [writer.strided, writer.sparse_coo])) == [
                reader.strided,
                reader.sparse_coo,
            ]


def test_layouts_and_memory_formats_are_themselves() -> None:
    for value in (retrograd.strided, retrograd.contiguous_format, retrograd.channels_last):
        assert pickle.loads(pickle.dumps(value)) is value
        assert pickle.loads(pickle.dumps(value, 2)) is value
        assert copy.deepcopy(value) is value
        assert retrograd.load(saved(retrograd, value), weights_only=False) is value


def test_memory_formats_of_torch_are_read() -> None:
    content = b"\x80\x04\x8c\x0ctorch._utils\x8c\x13torch.channels_last\x93."
    assert _trusting_class(pickle)(io.BytesIO(content)).load() is retrograd.channels_last


class Net(retrograd.nn.Module):
    """A module that holds a function."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = retrograd.nn.Linear(2, 2)
        self.activation = retrograd.tanh

    def forward(self, x: Any) -> Any:
        return self.activation(self.linear(x))


def test_a_module_holds_a_function() -> None:
    net = Net()
    made = retrograd.load(saved(retrograd, net), weights_only=False)
    assert made.activation is retrograd.tanh
    assert copy.deepcopy(net).activation is retrograd.tanh
    assert made(retrograd.ones(2)).tolist() == net(retrograd.ones(2)).tolist()


# ---- other processes ----
def run(program: str, tmp_path: Path, *options: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, *options, str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


POOLS = """
import concurrent.futures, multiprocessing, torch
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(torch.exp, [torch.zeros(1)]), pool.map(torch.Tensor.neg_, [torch.ones(1)]))
        try:
            pool.apply(torch.linalg.inv, [torch.zeros(1, 1)])
        except torch.linalg.LinAlgError as error:
            print(type(error))
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        print(pool.submit(torch.nn.Linear(1, 1).forward, torch.ones(1)).exception())
"""


def test_functions_go_to_other_processes(tmp_path: Path) -> None:
    printed = run(POOLS, tmp_path, "-m", "retrograd", "run").splitlines()
    assert printed[:2] == ["[tensor([1.])] [tensor([-1.])]", "<class 'torch._C._LinAlgError'>"]
    assert printed[2].startswith("Cowardly refusing to serialize non-leaf tensor")
    own_name = run(POOLS.replace(", torch\n", "\nimport retrograd as torch\n"), tmp_path).splitlines()
    assert own_name == [printed[0], "<class 'retrograd._C._LinAlgError'>", printed[2]]


HIDDEN = """
import pickle, torch
from torch.nn import utils
net = pickle.loads(pickle.dumps(utils.spectral_norm(torch.nn.Linear(1, 1))))
assert pickle.loads(pickle.dumps(utils.spectral_norm)) is utils.spectral_norm
utils.spectral_norm(torch.nn.Linear(1, 1))
try:
    import torch.tensor
except ModuleNotFoundError:
    print(torch.tensor([1]))
"""


def test_pickles_leave_functions_in_their_places(tmp_path: Path) -> None:
    assert run(HIDDEN, tmp_path, "-m", "retrograd", "run") == "tensor([1])\n"


PLAIN = """
import pickle, sys, torch
from torch import nn
values = [torch.tanh, torch.cdist, torch.Tensor.exp_, torch.Tensor.backward, nn.functional.gelu, torch.linalg.norm, torch.fft.fft]
values += [torch.special.entr, torch.strided, torch.channels_last, torch.Generator().manual_seed(2), torch.float64, torch.FloatTensor]
for value in values:
    for protocol in (2, 5):
        try:
            assert b"retrograd" not in pickle.dumps(value, protocol), value
        except TypeError:
            assert value is torch.channels_last, value
if len(sys.argv) > 1:
    pickle.dump(values[:9] + values[10:], open(sys.argv[1], "wb"))
"""


def test_plain_pickles_have_torch_s_names_under_the_alias(tmp_path: Path) -> None:
    run(PLAIN, tmp_path, "-m", "retrograd", "run")


@pytest.mark.oracle
def test_plain_pickles_of_functions_are_torch_s(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "pickle"
    run(PLAIN.replace("sys.argv", repr(["", str(path)])), tmp_path, "-m", "retrograd", "run")
    made = pickle.loads(path.read_bytes())
    assert made[:4] == [torch.tanh, torch.cdist, torch.Tensor.exp_, torch.Tensor.backward]
    assert made[8] is torch.strided
    assert made[9].initial_seed() == 2
