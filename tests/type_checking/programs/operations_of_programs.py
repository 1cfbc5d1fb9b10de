"""Modes that see operations, operations by their names, and operations of programs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import CustomOpDef, Library, custom_op, opcheck, register_fake
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.counts[str(func)] = self.counts.get(str(func), 0) + 1
        return func(*args, **(kwargs or {}))


class Naming(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        print(func.__name__)
        return func(*args, **(kwargs or {}))


class Scaled(torch.Tensor):
    held: Tensor

    @staticmethod
    def __new__(cls: type["Scaled"], inner: Tensor) -> "Scaled":
        made: Scaled = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        made.held = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        inside = tree_map(lambda one: one.held if isinstance(one, Scaled) else one, args)
        return return_and_correct_aliasing(func, args, kwargs or {}, func(*inside, **(kwargs or {})))


@custom_op("typed::double", mutates_args=())
def double(x: Tensor) -> Tensor:
    return x * 2


@double.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def backward(ctx: Any, grad: Tensor) -> Tensor:
    return grad * 2


double.register_autograd(backward, setup_context=setup_context)


def operations() -> None:
    added: Tensor = torch.ops.aten.add.Tensor(torch.ones(2), torch.ones(2))
    print(sorted(torch.ops.aten.add.overloads())[:1], torch.ops.aten.add.Tensor._schema, added)
    if torch.ops.aten.mm.default is torch.ops.aten.add.Tensor:
        raise AssertionError
    doubled: Tensor = torch.ops.typed.double(added)
    definition: CustomOpDef = double
    with Naming():
        total = doubled.sum()
    print(total)
    with Counting() as counting:
        total = definition(doubled).sum()
    print(total)
    print(counting.counts)
    library = Library("typed_too", "DEF")
    library.define("triple(Tensor x) -> Tensor")
    library.impl("triple", lambda x: x * 3, "CPU")
    register_fake("typed_too::triple", lambda x: torch.empty_like(x), lib=library)
    print(opcheck(double, (torch.ones(2),)))


operations()
