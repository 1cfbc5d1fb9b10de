"""torch.nn.attention.bias: the two causal masks of attention whose queries and keys differ in number, as values."""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any

from ..._dtypes import bool_
from ...tensor import Tensor, functions
from ..functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of the mask begins: at its first corner, or so that it ends at its last."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A causal mask that `scaled_dot_product_attention` takes; the matrix itself is made when it is needed."""

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        """Make the mask without its matrix."""
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be CausalVariant, got {type(variant)}")
        return super().__new__(cls, variant, seq_len_q, seq_len_kv)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv

    def _materialize(self, device: Any = None) -> Any:
        """Return the matrix: true where a query may look."""
        lower = self.variant == CausalVariant.LOWER_RIGHT
        ones = functions()["ones"](self.seq_len_q, self.seq_len_kv, dtype=bool_, device=device)
        return ones.tril(self.seq_len_kv - self.seq_len_q if lower else 0)

    @staticmethod
    def _dispatch(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        """Compute attention with the mask."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(
            query, key, value, mask, dropout_p, False, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._materialize())


def _sizes(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size[0], size[1]


def causal_upper_left(*size: int) -> CausalBias:
    """Make a mask in which query k sees the keys up to k."""
    made: CausalBias = CausalBias(CausalVariant.UPPER_LEFT, *_sizes("causal_upper_left", size))
    return made


def causal_lower_right(*size: int) -> CausalBias:
    """Make a mask in which the last query sees all keys, and each one before it one less."""
    made: CausalBias = CausalBias(CausalVariant.LOWER_RIGHT, *_sizes("causal_lower_right", size))
    return made
