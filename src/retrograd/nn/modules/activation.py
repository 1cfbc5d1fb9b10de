"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ..._public import set_all
from ..._warnings import warn
from ...overrides import taken_over, unwatched
from ...tensor._functions.creation import empty
from ...tensor._functions.elementwise import sigmoid, tanh
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..functional._attention import Heads, Masks, canonical_mask, run_heads
from ..parameter import make_parameter
from ._layers import NamedInit, Shown
from .linear import NonDynamicallyQuantizableLinear
from .module import Module


class _InPlace(NamedInit, Shown):
    """An activation that may write in place, which its text says where it is so."""

    __constants__ = ["inplace"]
    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        text = super().extra_repr()
        if not self.inplace:
            return text
        return f"{text}, inplace=True" if text else "inplace=True"


class Threshold(_InPlace):
    """Replaces what does not exceed a threshold by a value."""

    __constants__ = ["threshold", "value", "inplace"]
    _shown = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.threshold(input, self.threshold, self.value, self.inplace)


class ReLU(_InPlace):
    """Replaces what is negative by 0.

    Args:
        inplace: write the result into the input

    Example:
        >>> nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def forward(self, input: Any) -> Any:
        return F.relu(input, self.inplace)


class RReLU(_InPlace):
    """Multiplies by a slope where x is not positive: drawn in training, else the middle of the interval."""

    __constants__ = ["lower", "upper", "inplace"]
    _shown = ("lower", "upper")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.lower = lower
        self.upper = upper

    def forward(self, input: Any) -> Any:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(_InPlace):
    """Limits to an interval; its ends pass no gradient."""

    __constants__ = ["min_val", "max_val", "inplace"]
    _shown: tuple[str, ...] = ("min_val", "max_val")

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__(inplace)
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Any) -> Any:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """Limits to the interval from 0 to 6."""

    _shown = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Sigmoid(Module):
    """Computes 1 / (1 + exp(-x)).

    Example:
        >>> nn.Sigmoid()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """

    def forward(self, input: Any) -> Any:
        return sigmoid(input)


class Tanh(Module):
    """Computes the hyperbolic tangent.

    Example:
        >>> nn.Tanh()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    def forward(self, input: Any) -> Any:
        return tanh(input)


class Hardsigmoid(_InPlace):
    """Rises from 0 at -3 to 1 at 3."""

    def forward(self, input: Any) -> Any:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """Multiplies by a ramp from -3 to 3."""

    def forward(self, input: Any) -> Any:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class SiLU(_InPlace):
    """Computes x * sigmoid(x).

    Args:
        inplace: write the result into the input

    Example:
        >>> nn.SiLU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.2689,  0.7311])
    """

    def forward(self, input: Any) -> Any:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Multiplies by the hyperbolic tangent of softplus."""

    def forward(self, input: Any) -> Any:
        return F.mish(input, self.inplace)


class SELU(_InPlace):
    """Computes elu with the scales that keep mean and variance."""

    def forward(self, input: Any) -> Any:
        return F.selu(input, self.inplace)


class ELU(_InPlace):
    """Computes alpha * (exp(x) - 1) where x is negative; else x.

    Args:
        alpha: minus the limit for large negative x
        inplace: write the result into the input

    Example:
        >>> nn.ELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    __constants__ = ["alpha", "inplace"]
    _shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Any) -> Any:
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """Computes alpha (exp(x / alpha) - 1) where x is negative."""

    def forward(self, input: Any) -> Any:
        return F.celu(input, self.alpha, self.inplace)


class LeakyReLU(_InPlace):
    """Multiplies what is negative by a small slope.

    Args:
        negative_slope: the slope
        inplace: write the result into the input

    Example:
        >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    __constants__ = ["inplace", "negative_slope"]
    _shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Any:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class PReLU(Shown):
    """Multiplies what is negative by learned slopes.

    Args:
        num_parameters: 1, or the number of channels
        init: the slopes at the beginning
        device: where the parameters are
        dtype: their dtype

    Shape:
        (N, C, ...).

    Example:
        >>> nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])
    """

    __constants__ = ["num_parameters"]
    _shown = ("num_parameters",)
    weight: Tensor

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = make_parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Give all weights their initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        return F.prelu(input, self.weight)


class GLU(Shown):
    """Multiplies the first half of a dimension by the sigmoid of the second."""

    __constants__ = ["dim"]
    _shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Any:
        return F.glu(input, self.dim)


class GELU(Module):
    """Computes x times the probability that a normal variable is below x.

    Args:
        approximate: "none", or "tanh" for the usual approximation

    Example:
        >>> nn.GELU()(torch.tensor([-1.0, 1.0]))
        tensor([-0.1587,  0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Any:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Replaces what lies between -lambd and lambd by 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """Moves towards 0 by `lambd`."""

    def forward(self, input: Any) -> Any:
        return F.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """Computes x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """Computes the logarithm of the sigmoid."""

    def forward(self, input: Any) -> Any:
        return F.logsigmoid(input)


class Softplus(Shown):
    """Computes log(1 + exp(beta * x)) / beta: a smooth ReLU.

    Args:
        beta: how sharp the bend is
        threshold: above it, x itself is returned

    Example:
        >>> nn.Softplus()(torch.tensor([-1.0, 1.0]))
        tensor([0.3133, 1.3133])
    """

    __constants__ = ["beta", "threshold"]
    _shown = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Any) -> Any:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    """Computes x / (1 + |x|)."""

    def forward(self, input: Any) -> Any:
        return F.softsign(input)


class _Along(NamedInit, Shown):
    """An activation along a dimension."""

    __constants__ = ["dim"]
    _shown = ("dim",)
    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmin(_Along):
    """Normalises exponentials of the negative along a dimension."""

    def forward(self, input: Any) -> Any:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_Along):
    """Turns numbers along a dimension into probabilities.

    Args:
        dim: the dimension along which the results sum to 1

    Example:
        >>> nn.Softmax(dim=1)(torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
        tensor([[0.5000, 0.5000],
                [0.2689, 0.7311]])
    """

    def forward(self, input: Any) -> Any:
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_Along):
    """Computes the logarithm of softmax along a dimension.

    Args:
        dim: the dimension

    Example:
        >>> nn.LogSoftmax(dim=0)(torch.tensor([0.0, 1.0]))
        tensor([-1.3133, -0.3133])
    """

    def forward(self, input: Any) -> Any:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Normalises exponentials over the channels of images."""

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class MultiheadAttention(Module):
    """Attends from queries to keys and values, with several heads, and projections before and after.

    Args:
        embed_dim: the size of queries and results, divided among the heads
        num_heads: how many heads
        dropout: the share of attention weights that are dropped in training
        bias: whether the projections have biases
        add_bias_kv: append a learned position to keys and values
        add_zero_attn: append a position of zeros to keys and values
        kdim: the size of keys, if it is another
        vdim: the size of values, if it is another
        batch_first: (N, L, E) instead of (L, N, E)
        device: where the parameters are
        dtype: their dtype

    Returns:
        The results, and the attention weights, averaged over the heads, or None.

    Example:
        >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
        >>> x = torch.ones(1, 5, 8)
        >>> out, weights = attention(x, x, x)
        >>> out.shape, weights.shape
        (torch.Size([1, 5, 8]), torch.Size([1, 5, 5]))
    """

    __constants__ = ["batch_first"]
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
        if not unwatched(taken_over, (query, key, value, heads.in_weight, heads.in_bias, heads.out_weight)):
            masks = Masks(key_padding_mask, attn_mask, is_causal)
            return run_heads(query, key, value, heads, masks, need_weights, average_attn_weights, time=int(turned))
        return self._forward_seen(
            query,
            key,
            value,
            heads,
            turned,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )

    def _forward_seen(
        self, query: Any, key: Any, value: Any, heads: Heads, turned: bool, **options: Any
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
            use_separate_proj_weight=heads.separate is not None,
            q_proj_weight=q_weight,
            k_proj_weight=k_weight,
            v_proj_weight=v_weight,
            **options,
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


set_all(globals())
