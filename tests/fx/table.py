"""Programs made of the table of operations, to be traced by `make_fx`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.ops.infos import OPS
from tests.ops.opinfo import Op, Sample, arrays_of, is_float

# They are computed by no public function: `nn.grad` and packed sequences have rules of their own.
UNSEEN = {"conv2d_input", "conv2d_weight", "pack_padded_sequence", "pad_packed_sequence"}


def dtype_of(op: Op) -> str:
    return "int64" if "bitwise" in op.name else "float64"


def given(library: Any, op: Op, sample: Sample, row: int) -> list[Any]:
    return [library.tensor(array) for array in arrays_of(op, sample, dtype_of(op), row)]


def samples(how: str, count: int) -> Iterator[tuple[Op, Sample]]:
    """Return operations with samples on which a transform makes sense."""
    for op in OPS:
        if op.name.startswith("xp_") or op.name in UNSEEN:
            continue
        if (how in ("grad", "jvp", "hessian") and not op.differentiable) or (how == "vmap" and not op.batching):
            continue
        for sample in op.samples[:count]:
            if any(is_float(sample)) or (how in ("forward", "vmap") and arrays_of(op, sample)):
                yield op, sample


def program(library: Any, op: Op, sample: Sample, how: str) -> Callable[..., Any]:
    """Return a function of tensors: the operation itself, or a transform of it."""
    floats = is_float(sample)
    numbers = tuple(k for k, one in enumerate(floats) if one)

    def forward(*tensors: Any) -> Any:
        return op.function(library, sample, tensors)

    def scalar(*tensors: Any) -> Any:
        total = 0
        for one in library.utils._pytree.tree_leaves(forward(*tensors)):
            if isinstance(one, library.Tensor) and (one.is_floating_point() or one.is_complex()):
                total = total + (one.real if one.is_complex() else one).sin().sum()
        return total

    def pushed(*tensors: Any) -> Any:
        def of_floats(*own: Any) -> Any:
            left = iter(own)
            return forward(*[next(left) if one else tensor for one, tensor in zip(floats, tensors, strict=True)])

        own = tuple(tensors[k] for k in numbers)
        return library.func.jvp(of_floats, own, tuple(one.cos() for one in own))

    def batched(*tensors: Any) -> Any:
        stacks = [library.stack([one, one * 2 if one.is_floating_point() else one]) for one in tensors]
        return library.func.vmap(forward, randomness="different")(*stacks)

    return {
        "forward": forward,
        "grad": library.func.grad(scalar, argnums=numbers),
        "hessian": library.func.hessian(scalar, argnums=numbers),
        "jvp": pushed,
        "vmap": batched,
    }[how]


def traced(library: Any, op: Op, sample: Sample, how: str) -> Any:
    make_fx = importlib.import_module(f"{library.__name__}.fx.experimental.proxy_tensor").make_fx
    return make_fx(program(library, op, sample, how))(*given(library, op, sample, 0))


def targets(module: Any) -> list[str]:
    """Return the operations of a graph."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    return [str(node.target) for node in nodes if "getitem" not in str(node.target)]


def arrays(library: Any, result: Any) -> list[Any]:
    leaves = library.utils._pytree.tree_leaves(result)
    return [
        one.detach().resolve_conj().resolve_neg().numpy() if isinstance(one, library.Tensor) else np.asarray(one)
        for one in leaves
    ]


def holds(library: Any, module: Any, op: Op, sample: Sample, how: str) -> bool:
    """Tell whether a trace computes on other inputs what the program does."""
    library.manual_seed(0)
    wanted = arrays(library, program(library, op, sample, how)(*given(library, op, sample, 1)))
    library.manual_seed(0)
    found = arrays(library, module(*given(library, op, sample, 1)))
    return len(found) == len(wanted) and all(
        one.dtype == other.dtype and np.allclose(one, other, equal_nan=True)
        for one, other in zip(found, wanted, strict=True)
    )
