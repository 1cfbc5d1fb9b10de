"""torch's table of modules, and how what it holds is brought to retrograd."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence

import retrograd
from tests.opdb import translate

DTYPES = (torch.float32, torch.float64, torch.bfloat16)
# Modules of torch without an entry in either table, with the reason.
LEFT_OUT = {
    "Container": "deprecated, and refuses to be made",
    "Module": "the base class",
    "ModuleDict": "a container: tests/nn",
    "ModuleList": "a container: tests/nn",
    "ParameterDict": "a container: tests/nn",
    "ParameterList": "a container: tests/nn",
    "Sequential": "a container: tests/nn",
    "RNNBase": "a base class",
    "RNNCellBase": "a base class",
    "SyncBatchNorm": "needs several processes with CUDA devices",
    "LinearCrossEntropyOptions": "no module",
}


@functools.cache
def counted() -> list[Any]:
    """Return the entries that count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db

        from tests.moduledb import extra
    return [*module_db, *extra.entries()]


def name(info: Any) -> str:
    return info.name.removeprefix("nn.")


# ---- values that op_db does not know ----
def translated_module(module: torch.nn.Module) -> Any:
    """Return retrograd's module, made with the same arguments and holding the same values."""
    args, kwargs = module._constructed_with  # type: ignore[misc]
    made = getattr(retrograd.nn, type(module).__name__)(*translate.arguments(args), **translate.arguments(kwargs))
    made.load_state_dict(translate.arguments(dict(module.state_dict())))
    return made


def translated_options(options: Any) -> Any:
    fields = {f.name: getattr(options, f.name) for f in dataclasses.fields(options)}
    return retrograd.nn.LinearCrossEntropyOptions(**translate.arguments(fields))


def translated_packed(packed: Any) -> Any:
    return retrograd.nn.utils.rnn.PackedSequence(*(translate.arguments(one) for one in packed))


translate.OTHERS |= {torch.nn.Module: translated_module, PackedSequence: translated_packed}
if hasattr(torch.nn, "LinearCrossEntropyOptions"):  # since torch 2.13
    translate.OTHERS[torch.nn.LinearCrossEntropyOptions] = translated_options


@contextlib.contextmanager
def remembering_arguments(*classes: Any) -> Iterator[None]:
    """Let modules of these classes remember what they were made with, so that they can be made again."""
    originals = {cls: cls.__init__ for cls in classes}

    def remembers(cls: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            originals[cls](self, *args, **kwargs)
            self.__dict__.setdefault("_constructed_with", (args, dict(kwargs)))

        return __init__

    try:
        for cls in classes:
            cls.__init__ = remembers(cls)
        yield
    finally:
        for cls, original in originals.items():
            cls.__init__ = original


REMEMBERING = (torch.nn.TransformerEncoderLayer, torch.nn.TransformerDecoderLayer, torch.nn.LayerNorm)


def inputs(info: Any, dtype: Any, training: bool, requires_grad: bool, limit: int | None) -> list[Any]:
    """Return the samples of an entry."""
    torch.manual_seed(sum(map(ord, info.name)))
    with remembering_arguments(*REMEMBERING):
        generated = info.module_inputs_func(
            info, device="cpu", dtype=dtype, requires_grad=requires_grad, training=training
        )
        return list(itertools.islice(generated, limit))


def error_inputs(info: Any, dtype: Any) -> list[Any]:
    """Return the samples of an entry that raise."""
    if info.module_error_inputs_func is None:
        return []
    torch.manual_seed(0)
    return list(info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=False, training=True))
