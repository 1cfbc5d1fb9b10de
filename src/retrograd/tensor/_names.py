"""The table of names: which file holds which operation, and what it is: a function of the package, a method, in place.

A family in `LATER` is loaded when one of its names is first used, so that importing the package stays quick.
"""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """The public names of one file."""

    both: str = ""  # functions of the package that are methods of Tensor as well
    functions: str = ""
    methods: str = ""
    inplace: str = ""  # functions of which a method `name_` is made


NOW = {
    "_pointwise": Names(
        both="""neg negative exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin arcsin acos arccos
        atan arctan sigmoid relu erf reciprocal abs absolute sign sgn floor ceil trunc fix isnan isinf isfinite logical_not
        bitwise_not atan2 arctan2 maximum minimum eq ne not_equal lt less le less_equal gt greater ge greater_equal
        logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor remainder fmod floor_divide add sub subtract
        mul multiply div divide true_divide pow square round clamp clip clamp_min clamp_max where conj lerp addcmul addcdiv""",
        functions="complex rsub",
        inplace="""neg exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan sigmoid relu erf
        reciprocal abs sign floor ceil trunc pow square clamp round remainder fmod floor_divide eq ne lt le gt ge logical_not
        logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or bitwise_xor lerp addcmul addcdiv""",
    ),
    "_reductions": Names(
        both="sum mean prod amax amin max min argmax argmin any all logsumexp softmax log_softmax cumsum var std norm",
        inplace="cumsum",
    ),
    "_sorting": Names(both="sort argsort"),
    "_shaping": Names(
        both="""reshape permute transpose swapaxes swapdims t movedim moveaxis unsqueeze squeeze broadcast_to flatten ravel
        select narrow diagonal flip tril triu as_strided clone""",
        functions="cat concat concatenate stack",
        methods="view expand expand_as view_as contiguous",
        inplace="tril triu",
    ),
    "_splitting": Names(both="split chunk unbind"),
    "_matrix": Names(both="mm bmm mv dot outer matmul addmm"),
    "_indexing": Names(both="index_put", methods="index_put_"),
    "_gathering": Names(
        both="gather index_select scatter scatter_add index_add", inplace="scatter scatter_add index_add"
    ),
    "_masks": Names(both="masked_fill masked_select nonzero take_along_dim"),
    "_asking": Names(functions="is_tensor is_floating_point is_complex numel result_type real imag equal allclose"),
    "_creation": Names(
        functions="""tensor as_tensor asarray from_numpy zeros ones empty full zeros_like ones_like empty_like full_like
        arange linspace eye scalar_tensor meshgrid""",
        methods="new_zeros new_ones new_empty new_full",
    ),
    "_sampling": Names(
        functions="""Generator default_generator manual_seed seed initial_seed get_rng_state set_rng_state rand randn
        randint randperm rand_like randn_like randint_like bernoulli normal multinomial""",
        methods="uniform_ normal_ random_ bernoulli_ exponential_",
    ),
    "_casting": Names(methods="to item tolist numpy"),
    "_inplace": Names(methods="copy_ fill_ zero_ masked_fill_ detach_ requires_grad_"),
}
LATER: dict[str, Names] = {}


def owners(*kinds: str) -> dict[str, str]:
    """Return the file of every public name of some kinds, of families loaded later."""
    return {name: module for module, names in LATER.items() for kind in kinds for name in getattr(names, kind).split()}
