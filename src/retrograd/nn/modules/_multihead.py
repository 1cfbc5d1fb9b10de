"""Multi-head attention with its projections."""

from __future__ import annotations

from typing import Any

from ...overrides import taken_over
from ...tensor._functions.creation import empty
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..functional._multi_head import Heads, Masks, canonical_mask, run_heads
from ..parameter import make_parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class MultiheadAttention(Module):
    """Lets each query look at all keys, with several heads side by side, and mixes what they find."""

    __constants__ = ["batch_first"]  # noqa: RUF012 - torch's
    bias_k: Any
    bias_v: Any
    in_proj_weight: Any
    in_proj_bias: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Any:
            return make_parameter(empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in "qkv":
                self.register_parameter(f"{name}_proj_weight", None)
        else:
            for name, width in zip("qkv", (embed_dim, self.kdim, self.vdim), strict=True):
                self.register_parameter(f"{name}_proj_weight", parameter(embed_dim, width))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for name in "qkv":
                init.xavier_uniform_(getattr(self, f"{name}_proj_weight"))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({"_qkv_same_embed_dim": True, **state})  # which old files lack

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Return what the queries found, and the weights of the keys, or None without `need_weights`."""
        key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, compare=False)
        own = self._parameters
        separate = (
            None if self._qkv_same_embed_dim else (own["q_proj_weight"], own["k_proj_weight"], own["v_proj_weight"])
        )
        heads = Heads(
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            separate,
            self.out_proj.weight,
            self.out_proj.bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
        )
        turned = self.batch_first and query.dim() == 3
        if not taken_over((query, key, value, heads.in_weight, heads.in_bias, heads.out_weight)):
            masks = Masks(key_padding_mask, attn_mask, is_causal)
            return run_heads(query, key, value, heads, masks, need_weights, average_attn_weights, time=int(turned))
        return self._forward_seen(
            query, key, value, heads, turned, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
        )

    def _forward_seen(
        self,
        query: Any,
        key: Any,
        value: Any,
        heads: Heads,
        turned: bool,
        key_padding_mask: Any,
        need_weights: bool,
        attn_mask: Any,
        average_attn_weights: bool,
        is_causal: bool,
    ) -> tuple[Any, Any]:
        """Call the public function, for subclasses and modes that take calls over."""
        if turned:
            given = {id(one): one for one in (query, key, value)}  # what was one tensor stays one
            made = {which: one.transpose(1, 0) for which, one in given.items()}
            query, key, value = (made[id(one)] for one in (query, key, value))
        q_weight, k_weight, v_weight = heads.separate or (None, None, None)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            heads.features,
            heads.number,
            heads.in_weight,
            heads.in_bias,
            heads.bias_k,
            heads.bias_v,
            heads.add_zero,
            self.dropout,
            heads.out_weight,
            heads.out_bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=heads.separate is not None,
            q_proj_weight=q_weight,
            k_proj_weight=k_weight,
            v_proj_weight=v_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(1, 0) if turned else out), weights

    def merge_masks(self, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, int | None]:
        """Combine two masks that are added to scores; say which were given: 1 for padding alone, 2 with the other."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2


__all__ = ["MultiheadAttention"]
