"""Names that torch keeps for old programs: functions it has removed, `Tensor.resize`, and moves to devices that are not here."""

from __future__ import annotations

import functools
import operator
from typing import Any, NoReturn

from ..._ops import shape as s
from ..._warnings import warn
from ...overrides import declared
from .._aliasing.views import view_op
from .._functions.shape import contiguous

REMOVED = "This function was deprecated since version 1.9 and is now removed."


# ---- removed, with what to write instead ----
@declared(seen=False, forms="function method")
def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> NoReturn:
    """Say what has taken the place of this function."""
    raise RuntimeError(
        f"{REMOVED} The default behavior has changed from using the upper triangular portion of the matrix by default to "
        "using the lower triangular portion.\n\nUse torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L'), or "
        "torch.linalg.eigh with the same arguments for eigenvectors too."
    )


@declared(seen=False, forms="function method")
def eig(self: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> NoReturn:
    """Say what has taken the place of this function."""
    raise RuntimeError(
        f"{REMOVED} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
        "mimicking complex tensors.\n\nUse torch.linalg.eigvals(A), or torch.linalg.eig(A) for eigenvectors too."
    )


@declared(seen=False, forms="function method")
def solve(input: Any, A: Any, *, out: Any = None) -> NoReturn:  # noqa: N803 - torch's name
    """Say what has taken the place of this function."""
    raise RuntimeError(
        f"{REMOVED} `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments "
        "reversed and does not return the LU factorization.\n\nUse torch.linalg.solve(A, B) for torch.solve(B, A).solution, "
        "and torch.linalg.lu_factor(A) for the factorization."
    )


@declared(seen=False, forms="function method")
def lstsq(input: Any, A: Any, *, out: Any = None) -> NoReturn:  # noqa: N803 - torch's name
    """Say what has taken the place of this function."""
    raise RuntimeError(
        f"{REMOVED} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n\nUse torch.linalg.lstsq(A, B).solution "
        "for torch.lstsq(B, A).solution[:A.size(1)]; residuals are in its field of that name, the QR decomposition comes "
        "from torch.linalg.qr(A)."
    )


@declared(seen=False, forms="function")
def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> NoReturn:
    """Say what has taken the place of this function."""
    raise RuntimeError(
        f"{REMOVED}\nPlease use the `torch.linalg.matrix_rank` function instead. Its parameter for symmetric matrices is "
        "called 'hermitian'."
    )


# ---- sizes that are changed into another tensor ----
def resize(self: Any, *sizes: Any) -> Any:
    """Return a view, or a copy of what has no dense memory, with other sizes and as many elements."""
    warn("non-inplace resize is deprecated")
    return _resized(self, sizes)


def resize_as(self: Any, tensor: Any) -> Any:
    """Return a view with the sizes of another tensor, which has as many elements."""
    warn("non-inplace resize_as is deprecated")
    return _resized(self, tuple(tensor.size()))


def _resized(tensor: Any, sizes: tuple[Any, ...]) -> Any:
    own, total = tuple(tensor.size()), functools.reduce(operator.mul, sizes, 1)
    if tensor.numel() != total:
        raise RuntimeError(
            f"requested resize to {_by(sizes)} ({total} elements in total), but the given tensor has a size of {_by(own)} "
            f"({tensor.numel()} elements). autograd's resize can only change the shape of a given tensor, while preserving "
            "the number of elements. "
        )
    return view_op(contiguous(tensor), s.reshape, {"shape": tuple(sizes)}, "ResizeBackward")


def _by(sizes: tuple[Any, ...]) -> str:
    return "x".join(map(str, sizes))


# ---- devices that are not here ----
def xpu(self: Any, device: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> NoReturn:
    """Refuse: there is no such device."""
    raise AssertionError("Torch not compiled with XPU enabled\nHint: retrograd runs on cpu and cuda.")


def mtia(self: Any, device: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> NoReturn:
    """Refuse: there is no such device."""
    raise AssertionError("Torch not compiled with MTIA enabled.\nHint: retrograd runs on cpu and cuda.")


def ipu(self: Any, device: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> NoReturn:
    """Refuse: there is no such device."""
    raise RuntimeError("PyTorch is not linked with support for ipu devices\nHint: retrograd runs on cpu and cuda.")
