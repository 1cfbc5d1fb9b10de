"""autocast: which public functions compute in a smaller dtype, and which in float32.

`overrides` asks this table before it calls a function, as it asks subclasses and modes; nothing else knows of autocast.
"""

from __future__ import annotations

from typing import Any

from ... import _dtypes
from .. import _base

SINGLE = _dtypes.dtype_named("float32")
HALVES = (_dtypes.dtype_named("bfloat16"), _dtypes.dtype_named("float16"))
FLOATS = (SINGLE, *HALVES)  # torch leaves float64 as it is

_PRODUCTS = """linear matmul mm bmm addmm addbmm baddbmm chain_matmul multi_dot matrix_power einsum inner tensordot vecdot
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc scaled_dot_product_attention
    multi_head_attention_forward"""
_LOSSES = """cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy
    binary_cross_entropy_with_logits poisson_nll_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss
    cosine_embedding_loss triplet_margin_loss soft_margin_loss multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss ctc_loss"""
_NO_HALVES_ON_CPU = """avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d max_unpool2d max_unpool3d fractional_max_pool2d
    fractional_max_pool3d grid_sample polar prod quantile nanquantile stft cdist trace view_as_complex
    cholesky cholesky_ex cholesky_inverse cholesky_solve inverse inv inv_ex lu_solve ormqr orgqr householder_product pinverse pinv
    cond matrix_rank solve solve_ex lstsq svd svdvals eig eigvals eigh eigvalsh qr geqrf triangular_solve tensorinv tensorsolve
    fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft"""
_SENSITIVE_ON_CUDA = """acos asin cosh tan sinh exp expm1 log log10 log1p log2 pow reciprocal rsqrt erfinv softplus softmax softmin
    log_softmax layer_norm group_norm norm vector_norm matrix_norm normalize cosine_similarity cdist pdist dist renorm
    sum prod cumsum cumprod"""
LOWERED = {
    "cpu": frozenset(f"{_PRODUCTS} prelu lstm rnn_tanh rnn_relu".split()),
    "cuda": frozenset(f"{_PRODUCTS} mv addmv addr prelu lstm gru rnn_tanh rnn_relu".split()),
}
RAISED = {
    "cpu": frozenset(f"{_LOSSES} {_NO_HALVES_ON_CPU}".split()),
    "cuda": frozenset(f"{_LOSSES} {_SENSITIVE_ON_CUDA}".split()),
}


def cast_arguments(name: str, autocast: tuple[str, Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a public function in the dtype that autocast gives it."""
    device, dtype = autocast
    name = name.removeprefix("linalg_").removeprefix("fft_")
    if name in LOWERED.get(device, ()):
        of: tuple[Any, ...] = FLOATS
    elif name in RAISED.get(device, ()):
        dtype, of = SINGLE, HALVES
    else:
        return args, kwargs

    def cast(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(cast, value))
        fits = isinstance(value, _base.Tensor) and value.dtype in of and value.device.type == device
        return value.to(dtype) if fits else value

    return tuple(map(cast, args)), {key: cast(value) for key, value in kwargs.items()}
