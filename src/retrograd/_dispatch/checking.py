"""torch.library.opcheck: does what is registered for an operation agree with what it does?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..utils._pytree import tree_map_only
from . import flat_tensors


class OpCheckError(Exception):
    """What a check of an operation has found."""


class MetadataMismatchError(RuntimeError):
    """A rule for shapes gives another shape, dtype or stride than the kernel."""


def _copied(values: Any) -> Any:
    return tree_map_only(Tensor, lambda one: one.detach().clone().requires_grad_(one.requires_grad), values)


def _schema(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    """The operation writes into what its schema says, and nowhere else."""
    schema = op._schema
    own, named = tree_map_only(Tensor, lambda one: one.detach(), _copied((args, kwargs)))
    before = copy.deepcopy([*own, *named.values()])
    out = op(*own, **named)
    names = [one.name for one in schema.arguments]
    given = dict(zip(names, own, strict=False)) | named
    for argument, was in zip([*names[: len(own)], *named], before, strict=True):
        declared = next(one for one in schema.arguments if one.name == argument)
        for now, then in zip(flat_tensors((given[argument],)), flat_tensors((was,)), strict=True):
            changed = not now.equal(then) and not (now.isnan() & then.isnan()).any()
            if changed and not declared.is_write:
                raise RuntimeError(f"Argument {argument} is not defined as mutable but was mutated")
    inputs = {one.data_ptr(): name for name, value in given.items() for one in flat_tensors((value,)) if one.numel()}
    for at, one in enumerate(flat_tensors((out,))):
        name = inputs.get(one.data_ptr()) if one.numel() else None
        if name is not None and not any(r.alias_info is not None for r in schema.returns):
            raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing (output {at})")


def _autograd_registration(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    """A derivative is registered for the operation, not for what its kernel calls."""
    from .programs import find

    if op.namespace in ("aten", "retrograd") or not any(
        one.requires_grad for one in flat_tensors((args, *kwargs.values()))
    ):
        return
    operation = find(op.name())
    if operation.of_function or operation.backward or operation.by_autograd or operation.sees_through:
        return
    own, named = _copied((args, kwargs))
    if any(one.requires_grad for one in flat_tensors((op(*own, **named),))):
        raise AssertionError(
            "You have registered an implementation for this op that records autograd: please use "
            "torch.library.register_autograd to register a derivative, or the key CompositeImplicitAutograd for the kernel."
        )


def _faketensor(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    """The shape rule gives what the kernel gives."""
    own, named = tree_map_only(Tensor, lambda one: one.detach(), _copied((args, kwargs)))
    real = flat_tensors((op(*own, **named),))
    fake_args, fake_kwargs = tree_map_only(Tensor, lambda one: one.detach().to("meta"), (args, kwargs))
    fake = flat_tensors((op(*fake_args, **fake_kwargs),))
    start = f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched"
    if len(real) != len(fake):
        raise MetadataMismatchError(f"{start} numbers of outputs: {len(real)} and {len(fake)}")
    for one, other in zip(real, fake, strict=True):
        if one.shape != other.shape:
            raise MetadataMismatchError(f"{start} tensor metadata: Shapes {one.shape} and {other.shape} are not equal!")
        if one.dtype != other.dtype:
            raise MetadataMismatchError(f"{start} tensor metadata: Dtypes {one.dtype} and {other.dtype} are not equal!")
        if one.stride() != other.stride():
            raise MetadataMismatchError(
                f"{start} tensor metadata: Strides {one.stride()} and {other.stride()} are not equal!"
            )


def _aot_dispatch(op: Any, args: Any, kwargs: Any, tolerance: Any) -> None:
    """The operation has a rule for shapes, and gives the same results and gradients where a mode sees it as where none does."""
    from ..testing import assert_close
    from ..utils._python_dispatch import BaseTorchDispatchMode

    fake_args, fake_kwargs = tree_map_only(Tensor, lambda one: one.detach().to("meta"), (args, kwargs))
    op(*fake_args, **fake_kwargs)

    plain, seen = _copied((args, kwargs)), _copied((args, kwargs))
    one = op(*plain[0], **plain[1])
    with BaseTorchDispatchMode():
        other = op(*seen[0], **seen[1])
    for a, b in zip(flat_tensors((one,)), flat_tensors((other,)), strict=True):
        assert_close(a, b, **tolerance)
    wanted = [flat_tensors((*own, *named.values())) for own, named in (plain, seen)]
    if not any(x.requires_grad for x in wanted[0]):
        return
    for tensors in ((one,), (other,)):
        loss = sum(x.sum() for x in flat_tensors(tensors) if x.requires_grad)
        if isinstance(loss, Tensor):
            loss.backward()
    for a, b in zip(*wanted, strict=True):
        if a.grad is not None or b.grad is not None:
            assert_close(a.grad, b.grad, **tolerance)


CHECKS: dict[str, Callable[..., None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd_registration,
    "test_faketensor": _faketensor,
    "test_aot_dispatch_dynamic": _aot_dispatch,
    "test_aot_dispatch_static": _aot_dispatch,
}
ALL = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def check(op: Any, args: Any, kwargs: Any, names: Any, raise_exception: bool, atol: Any, rtol: Any) -> dict[str, Any]:
    """Run checks, by their names: "SUCCESS" or the error for each."""
    if (atol is None) != (rtol is None):
        raise ValueError("opcheck(op, ...): if you specify one of atol/rtol, you must specify both")
    tolerance = {} if atol is None else {"atol": atol, "rtol": rtol}
    if hasattr(op, "_opoverload"):
        op = op._opoverload
    elif hasattr(op, "overloads"):
        op = getattr(op, op.overloads()[0])
    names = (names,) if isinstance(names, str) else tuple(names)
    if unknown := set(names) - set(CHECKS):
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {set(CHECKS)} but it was not: {unknown}"
        )
    results: dict[str, Any] = {}
    for name in names:
        try:
            CHECKS[name](op, tuple(args), dict(kwargs), tolerance)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results
