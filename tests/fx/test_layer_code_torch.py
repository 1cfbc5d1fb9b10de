"""The code of graphs that call functions of nn.functional and layers: torch's, with the defaults that its functions hand over."""

from __future__ import annotations

import inspect
import warnings
from types import FunctionType, ModuleType
from typing import Any

import pytest

import retrograd

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

# torch hands over l1_loss without its weight and the arguments of attention in an order of its own, and calls threshold by another name;
# the rest takes no proxies, or needs numbers of few bits.
OTHERWISE = [
    "assert_int_or_pair",
    "boolean_dispatch",
    "grouped_mm",
    "l1_loss",
    "multi_head_attention_forward",
    "scaled_grouped_mm",
    "scaled_mm",
    "threshold",
]
GIVEN = {
    "bilinear": "input1 input2 weight",
    "conv_tbc": "input weight bias",
    "scaled_dot_product_attention": "query key value",
    "pad": "input pad",
    "threshold_": "input 0.5 1.0",
    **dict.fromkeys(["interpolate", "upsample", "upsample_nearest", "upsample_bilinear"], "input scale_factor=2"),
}
ONE_INPUT = [
    "celu_",
    "elu_",
    "gelu",
    "hardshrink",
    "hardtanh_",
    "leaky_relu_",
    "logsigmoid",
    "pdist",
    "relu_",
    "rrelu_",
    "selu_",
    "softplus",
    "softshrink",
]
MODULES = {
    "Linear": (3, 2), "Bilinear": (2, 2, 2), "Conv1d": (1, 1, 3), "Conv2d": (1, 1, 3), "ReLU": (), "ELU": (), "GELU": (), "Softmax": (1,),
    "LogSoftmax": (1,),
    "Sigmoid": (), "Tanh": (), "Dropout": (), "LayerNorm": (3,), "GroupNorm": (1, 3), "RMSNorm": (3,),
    "AvgPool2d": (2,),
    "AdaptiveAvgPool2d": (1,), "Embedding": (3, 4), "MSELoss": (), "CrossEntropyLoss": (), "PixelShuffle": (2,), "ZeroPad2d": (1,),
    "Hardtanh": (), "SiLU": (), "Softplus": (), "LeakyReLU": (), "BCELoss": (), "GLU": (), "Softshrink": (), "PairwiseDistance": (),
    "LogSigmoid": (), "Sequential": (), "Flatten": (), "Upsample": (None, 2),
}  # fmt: skip


def names() -> list[str]:
    home = torch.nn.functional
    found = []
    for name in dir(home):
        value = getattr(home, name)
        is_theirs = (getattr(value, "__module__", None) or "torch._C").startswith(
            ("torch.nn.functional", "torch._C", "torch._jit")
        )
        if name.startswith(("_", "has_torch_function")) or isinstance(value, (type, ModuleType)) or not callable(value):
            continue
        if (
            (is_theirs or not isinstance(value, FunctionType))
            and name not in OTHERWISE
            and hasattr(retrograd.nn.functional, name)
        ):
            found.append(name)
    return found


def arguments(name: str) -> list[str]:
    """Return what a call must give."""
    if name in GIVEN or name in ONE_INPUT:
        return GIVEN.get(name, "input").split()
    try:
        parameters = inspect.signature(inspect.unwrap(getattr(torch.nn.functional, name))).parameters.values()
    except ValueError:  # written in C
        return ["input", "weight" if "conv" in name else "other"]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        return ["input", "kernel_size"]
    return [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


def code(library: Any, name: str) -> Any:
    given = arguments(name)
    placeholders = [one for one in given if one.isidentifier()]
    scope = {"F": library.nn.functional}
    exec(f"def f({', '.join(placeholders)}):\n    return F.{name}({', '.join(given)})\n", scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.fx.symbolic_trace(scope["f"]).code


@pytest.mark.parametrize("name", names())
def test_a_function_is_written_as_by_torch(name: str) -> None:
    assert code(retrograd, name) == code(torch, name)


@pytest.mark.parametrize("name", MODULES)
def test_a_layer_is_written_as_by_torch(name: str) -> None:
    def text(library: Any) -> Any:
        return library.fx.symbolic_trace(getattr(library.nn, name)(*MODULES[name])).code

    assert text(retrograd) == text(torch)


def test_other_classes_get_the_arguments_in_the_same_way() -> None:
    def seen(library: Any) -> Any:
        calls = []

        class Seen(library.Tensor):  # type: ignore[misc, name-defined]
            @classmethod
            def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                calls.append((func.__name__, len(args), sorted((kwargs or {}).items(), key=str)))
                return super().__torch_function__(func, types, args, kwargs or {})

        x = library.ones(1, 1, 4, 4).as_subclass(Seen)
        F = library.nn.functional  # noqa: N806
        F.relu(x), F.max_pool2d(x, 2), F.layer_norm(x, (4,)), library.celu(x, 2.0), F.celu(x, 2.0)
        return calls

    assert seen(retrograd) == seen(torch)


def test_the_package_has_functions_of_its_own() -> None:
    for name in ("celu", "selu", "rrelu", "threshold", "max_pool1d", "max_pool2d", "max_pool3d"):
        assert getattr(retrograd, name) is not getattr(retrograd.nn.functional, name)
    with pytest.raises(TypeError, match="inplace"):
        retrograd.celu(retrograd.ones(1), inplace=True)
    for name in ("relu_", "celu_", "selu_", "rrelu_", "threshold_"):
        assert getattr(retrograd, name) is getattr(retrograd.nn.functional, name)
