"""Which rule is which function's, by its name; and the rules of layers and indices. Functions without one compute with wholes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._modes import using
from ..._size import Size
from ...tensor import Tensor
from . import _propagation as p
from ._dtensor import placed
from ._propagation import FILLING, UNKNOWN, WHOLE, Call, Strategy, run, words
from .placement_types import Shard


def call(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a function on distributed tensors."""
    name = getattr(func, "__name__", "")
    if name in OF_THE_OBJECT:
        with using(torch_function=False):
            return func(*args, **kwargs)
    this = Call(func, tuple(args), dict(kwargs))
    if "out" in kwargs and kwargs["out"] is not None:
        raise NotImplementedError(f"{name}(out=...) of distributed tensors: use the result")
    if kwargs.get("inplace"):
        return args[0].copy_(func(*args, **{**kwargs, "inplace": False}))
    in_place = name.endswith("_") and not name.endswith("__")
    rule = RULES.get(name)
    if rule is None and in_place and (name[:-1] in POINTWISE or name in FILLING):
        rule = p.in_place
    if rule is not None:
        return rule(this)
    if this.mesh.size() == 1:
        return _alone(this)
    if name in REFUSED:
        raise NotImplementedError(UNKNOWN.format(name=name))
    return p.changed(this) if in_place else p.whole(this)


def _alone(this: Call) -> Any:
    """Run any function where the one process has everything: results of the first argument's shape lie as it does."""
    first = this.tensors[0]
    args, kwargs = this.with_tensors([one.as_subclass(Tensor) for one in this.tensors])

    def placed_as_first(one: Any) -> Any:
        kept = tuple(one.shape) == first._whole_shape
        return placed(one, this.mesh, first.placements if kept else (WHOLE,) * this.mesh.ndim, one.shape)

    return p.mapped(this.func(*args, **kwargs), placed_as_first)


def by_index(this: Call) -> Any:
    """Take or put what numbers say along a dimension: the others stay cut, in all tensors that have them."""
    source = this.tensors[0]
    ndim, along = source.ndim, p.dims_of(this.argument(1, "dim"), source.ndim)
    strategies: list[Strategy] = []
    for dim in range(ndim):
        sizes = {one._whole_shape[dim] for one in this.tensors if one.ndim == ndim}
        if dim not in along and len(sizes) == 1:
            strategies.append((Shard(dim), tuple(Shard(dim) if one.ndim == ndim else WHOLE for one in this.tensors)))
    return run(this, strategies)


def of_samples(this: Call) -> Any:
    """Run a layer on each sample: samples may be cut, weights are whole."""
    source = this.tensors[0]
    spatial = next((int(letter) for letter in this.name if letter.isdigit()), None)
    if spatial is not None and source.ndim != spatial + 2:  # one sample, without a dimension for them
        return p.whole(this)
    return run(this, [(Shard(0), (Shard(0), *(WHOLE,) * (len(this.tensors) - 1)))])


def of_batches(this: Call) -> Any:
    """Normalise by the batch, which must be whole, or by running statistics. These are written, so all processes have them."""
    statistics = [one for one in (this.argument(1, "running_mean"), this.argument(2, "running_var")) if one is not None]
    if any(not place.is_replicate() for one in statistics for place in one.placements):
        raise NotImplementedError(f"{this.name}: its running statistics must be Replicate")
    training = this.argument(5, "training", False) if this.name == "batch_norm" else True
    return p.whole(this) if training else of_samples(this)


def padded(this: Call) -> Any:
    """Pad: dimensions that do not grow stay cut."""
    source = this.tensors[0]
    pads = list(this.argument(1, "pad"))
    grown = {source.ndim - 1 - at // 2 for at, count in enumerate(pads) if count}
    return run(this, [(Shard(dim), (Shard(dim),)) for dim in range(source.ndim) if dim not in grown])


def repeated(this: Call) -> Any:
    """Repeat a tensor: dimensions that stay as they are stay cut."""
    source, shapes = this.tensors[0], this.shapes()
    new = shapes.ndim - source.ndim
    kept = [dim for dim in range(source.ndim) if source._whole_shape[dim] == shapes.shape[dim + new]]
    return run(this, [(Shard(dim + new), (Shard(dim),)) for dim in kept], shapes)


def looked_up(this: Call) -> Any:
    """Look the elements of the first tensor up in the others: it may be cut."""
    first, *others = this.tensors
    if this.name == "one_hot" and this.argument(1, "num_classes", -1) < 0:  # the largest of all says how many
        return p.whole(this)
    return run(this, [(Shard(dim), (Shard(dim), *(WHOLE,) * len(others))) for dim in range(first.ndim)])


def chosen_or_found(this: Call) -> Any:
    """Choose between two tensors, or find where one is true."""
    return p.pointwise(this) if len(this.args) + len(this.kwargs) > 1 else p.whole(this)


def outer(this: Call) -> Any:
    """Multiply every element of a vector by every one of another."""
    x, y = this.tensors
    ways: list[Strategy] = [(Shard(0), (Shard(0), WHOLE)), (Shard(1), (WHOLE, Shard(0)))]
    return run(this, ways, Size((x.numel(), y.numel())))


OF_THE_OBJECT = words(
    """register_hook retain_grad requires_grad_ backward register_post_accumulate_grad_hook is_contiguous dim detach_
    is_floating_point is_complex is_signed is_conj is_neg is_inference get_device"""
)
REFUSED = words(
    # what draws would draw something else in each process, of what is to be the same
    """binomial normal rrelu gumbel_softmax native_dropout dropout1d dropout2d dropout3d
    feature_dropout feature_alpha_dropout fractional_max_pool2d fractional_max_pool3d cauchy_ geometric_ log_normal_ rrelu_"""
    # what is about memory would be about that of a copy
    """ as_strided as_strided_ set_ resize_ resize_as_ share_memory_ pin_memory __dlpack__ data_ptr storage untyped_storage"""
)
POINTWISE = words(
    """
    add sub mul div true_divide floor_divide remainder fmod pow float_power neg negative positive abs absolute sign exp exp2 expm1 log
    log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid erf erfc
    erfinv ceil floor round trunc frac clamp clip clamp_min clamp_max maximum minimum fmax fmin where lerp addcmul addcdiv hypot
    relu relu6 gelu silu mish elu selu celu leaky_relu hardtanh hardsigmoid hardswish softplus softsign tanhshrink logsigmoid threshold
    dropout alpha_dropout eq ne lt le gt ge __eq__ __ne__ greater less greater_equal less_equal not_equal
    logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf isfinite nan_to_num
    masked_fill clone contiguous to type float double half bfloat16 int long short char byte bool cpu cuda real imag conj
    __rsub__ __rdiv__ __rpow__ __rtruediv__ __rfloordiv__ __rmod__ __floordiv__ __mod__ __pow__ __rmul__ __radd__ rsub logit lgamma
    digamma sinc xlogy copysign heaviside deg2rad rad2deg polar angle sgn signbit subtract multiply divide fix
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh conj_physical i0 isneginf isposinf isreal isclose nextafter logaddexp logaddexp2
    ldexp gcd lcm zeta entr erfcx expit i0e i1 i1e log_ndtr ndtri ndtr xlog1py polygamma mvlgamma igamma igammac gammainc gammaincc
    __and__ __or__ __xor__ __rand__ __ror__ __rxor__ __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift
    hardshrink softshrink complex bernoulli poisson
    """
)
RULES: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(POINTWISE, p.pointwise),
    **dict.fromkeys(words("zeros_like ones_like empty_like full_like rand_like randn_like randint_like"), p.made_like),
    **dict.fromkeys(words("new_zeros new_ones new_empty new_full new_tensor new_tensor_method"), p.new_whole),
    **dict.fromkeys(words("matmul mm bmm mv dot vdot"), p.matmul),
    **dict.fromkeys(words("addmm addmv baddbmm"), p.added_product),
    **dict.fromkeys(words("norm vector_norm"), p.norm),
    **dict.fromkeys(words("layer_norm rms_norm"), p.normalised),
    **dict.fromkeys(words("cross_entropy nll_loss"), p.cross_entropy),
    **dict.fromkeys(
        words(
            """mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss
            soft_margin_loss hinge_embedding_loss margin_ranking_loss"""
        ),
        p.loss_of_each,
    ),
    **dict.fromkeys(words("view reshape flatten unflatten squeeze unsqueeze view_as reshape_as ravel"), p.reshaped),
    **dict.fromkeys(words("t transpose permute swapaxes swapdims movedim moveaxis adjoint"), p.permuted),
    **dict.fromkeys(words("expand expand_as broadcast_to"), p.expanded),
    **dict.fromkeys(words("repeat tile"), repeated),
    **dict.fromkeys(words("cat stack concat concatenate"), p.joined),
    **dict.fromkeys(words("item __float__ __int__ __bool__ __complex__ __index__"), p.number),
    **dict.fromkeys(words("equal allclose"), p.compared),
    **dict.fromkeys(words("split chunk tensor_split split_with_sizes"), p.along(2, "dim", 0)),
    **dict.fromkeys(
        words("softmax log_softmax softmin cumsum cumprod logcumsumexp cummax cummin narrow"), p.along(1, "dim")
    ),
    **dict.fromkeys(words("sort argsort glu"), p.along(1, "dim", -1)),
    **dict.fromkeys(words("topk kthvalue"), p.along(2, "dim", -1)),
    "flip": p.along(1, "dims"),
    "roll": p.along(2, "dims"),
    "normalize": p.along(2, "dim", 1),
    **dict.fromkeys(words("tril triu"), p.along(9, "none", (-2, -1))),
    "multinomial": p.along(9, "none", -1),
    **dict.fromkeys(
        words("prod var std logsumexp argmax argmin median all any count_nonzero nansum nanmean var_mean std_mean"),
        p.reducing(None),
    ),
    "sum": p.reducing("sum"),
    **dict.fromkeys(words("amax max"), p.reducing("max")),
    **dict.fromkeys(words("amin min"), p.reducing("min")),
    "mean": p.mean,
    "linear": p.linear,
    "einsum": p.einsum,
    "outer": outer,
    "scaled_dot_product_attention": p.attention,
    "embedding": p.embedding,
    "unbind": p.unbound,
    "select": p.unbound,
    **dict.fromkeys(
        words("gather index_select index_add index_copy index_fill scatter scatter_add scatter_reduce index_reduce"),
        by_index,
    ),
    **dict.fromkeys(words("bucketize isin one_hot"), looked_up),
    **dict.fromkeys(
        words(
            """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d
            avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
            adaptive_max_pool3d group_norm"""
        ),
        of_samples,
    ),
    **dict.fromkeys(words("batch_norm instance_norm"), of_batches),
    "pad": padded,
    "where": chosen_or_found,
    "__getitem__": p.indexed,
    "__setitem__": p.changed,
    "detach": p.detached,
    "type_as": p.cast_as,
}
