"""What methods of torch for other layouts answer on a dense tensor: itself, a number of dimensions, or an error in torch's words."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._warnings import warn
from ...overrides import called, overridable
from .._functions.norms import matrix_norm, vector_norm


@overridable
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """Return the tensor itself, which is dense."""
    return self if dtype is None else self.to(dtype)


@overridable
def dense_dim(self: Any) -> int:
    """Return the number of dense dimensions: all."""
    return int(self._array.ndim)


@overridable
def sparse_dim(self: Any) -> int:
    """Return the number of sparse dimensions: none."""
    return 0


def _refusing(name: str, layout: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{name} expected {layout} tensor layout but got Strided")

    return called(refuse, name, f"Refuse: {name} belongs to another layout.")


_COO, _ROWS, _COLUMNS = "sparse coordinate", "sparse row compressed", "sparse column compressed"
coalesce, is_coalesced = _refusing("coalesce", _COO), _refusing("is_coalesced", _COO)
indices, values = _refusing("indices", _COO), _refusing("values", "sparse")
crow_indices, col_indices = _refusing("crow_indices", _ROWS), _refusing("col_indices", _ROWS)
ccol_indices, row_indices = _refusing("ccol_indices", _COLUMNS), _refusing("row_indices", _COLUMNS)


@overridable
def dequantize(input: Any) -> Any:
    """Return the tensor as float32: it is not quantized."""
    return input.float()


@overridable
def is_distributed(input: Any) -> bool:
    """Tell that a tensor lies in one process."""
    return False


def const_data_ptr(self: Any) -> int:
    """Return where the first element lies."""
    return int(self.data_ptr())


def record_stream(self: Any, stream: Any) -> None:
    """Note nothing: CuPy's arrays stay until the stream that made them is done."""
    if not hasattr(stream, "wait_event"):
        raise RuntimeError("unknown parameter type")


def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """Return what `load_state_dict` puts in the place of this tensor, where tensors are exchanged."""
    return other.detach() if assign else self.copy_(other).detach()


def reinforce(self: Any, reward: Any) -> NoReturn:
    """Say what has taken the place of this method."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead: loss = -m.log_prob(action) * reward, for an action that "
        "m.sample() gave."
    )


def storage_type(self: Any) -> Any:
    """Return the class of the storage."""
    return self._typed_storage()._get_legacy_storage_class()


def slice_inverse(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Return the tensor that a slice was taken of, by the slice's memory and the layout of the other."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


def frobenius_norm(input: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Any:
    """`linalg.vector_norm` of 2, under a name that torch keeps for old programs."""
    _kept_for_old("frobenius_norm", "linalg.vector_norm(A, 2., dim, keepdim)")
    return vector_norm(input, 2, dim, keepdim, out=out)


def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False, *, out: Any = None) -> Any:
    """`linalg.matrix_norm` of the singular values, under a name that torch keeps for old programs."""
    _kept_for_old("nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)")
    if isinstance(dim, bool):  # `nuclear_norm(input, keepdim)`
        dim, keepdim = (-2, -1), dim
    return matrix_norm(input, "nuc", dim, keepdim, out=out)


def _kept_for_old(name: str, instead: str) -> None:
    warn(
        f"at::{name} is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch "
        f"release. Please use `{instead}` instead"
    )
