"""The index of names: which file holds which public function, and the forms that it has.

Written by tools/make_names.py; do not edit.
"""

from __future__ import annotations

from typing import NamedTuple


class Names(NamedTuple):
    """The public names of one file."""

    both: str = ""  # functions of the package that are methods of Tensor as well
    functions: str = ""
    methods: str = ""
    inplace: str = ""  # functions of which a method `name_` is made
    spread: str = ""  # methods among the others that take sizes or dims one by one as well, or in one sequence
    writing: str = ""  # methods that write in place and are functions of the package as well


# loaded with the package
NOW = {
    "_functions.elementwise": Names(
        both="""neg negative exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin arcsin acos arccos atan
        arctan sigmoid relu erf reciprocal abs absolute sign sgn floor ceil trunc fix isnan isinf isfinite logical_not
        atan2 arctan2 maximum minimum logical_and logical_or logical_xor eq ne not_equal lt less le less_equal gt
        greater ge greater_equal bitwise_and bitwise_or bitwise_xor bitwise_not remainder fmod floor_divide add sub
        subtract mul multiply div divide true_divide pow square round clamp clip clamp_min clamp_max where conj lerp
        addcmul addcdiv""",
        functions="rsub complex",
        methods="true_divide_ eq_ lt_ le_ ne_ gt_ ge_ not_equal_ less_ less_equal_ greater_ greater_equal_",
        inplace="""neg negative exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin arcsin acos arccos atan
        arctan sigmoid relu erf reciprocal abs absolute sign sgn floor ceil trunc fix logical_not atan2 arctan2
        logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not remainder fmod floor_divide
        add sub subtract mul multiply div divide pow square round clamp clip clamp_min clamp_max lerp addcmul addcdiv""",
        writing="""neg_ negative_ exp_ expm1_ log_ log1p_ log2_ log10_ sqrt_ rsqrt_ sin_ cos_ tan_ sinh_ cosh_ tanh_ asin_
        arcsin_ acos_ arccos_ atan_ arctan_ sigmoid_ relu_ erf_ reciprocal_ abs_ floor_ ceil_ trunc_ fix_ square_
        round_ clamp_ clip_ clamp_min_ clamp_max_""",
    ),
    "_functions.reduce": Names(
        both="""sum mean prod nansum nanmean amax amin max min argmax argmin any all count_nonzero logsumexp softmax
        log_softmax""",
        spread="count_nonzero",
    ),
    "_functions.order": Names(both="sort argsort msort"),
    "_functions.shape": Names(
        both="""reshape permute transpose swapdims swapaxes t movedim moveaxis unsqueeze squeeze broadcast_to flatten
        unflatten ravel select narrow diagonal clone adjoint""",
        methods="view expand expand_as view_as contiguous",
        inplace="transpose swapdims swapaxes t unsqueeze squeeze",
        spread="reshape permute squeeze expand broadcast_to",
    ),
    "_functions.joining": Names(functions="cat concat concatenate stack"),
    "_functions.splitting": Names(
        both="split split_with_sizes chunk unbind unsafe_split unsafe_split_with_sizes unsafe_chunk",
    ),
    "_functions.matrix_products": Names(both="mm bmm mv dot vdot outer ger matmul addmm"),
    "_functions.index": Names(both="index_put", methods="index_put_", writing="index_put_"),
    "_functions.gathering": Names(
        both="gather index_select index_add index_reduce index_copy index_fill",
        inplace="index_add index_reduce index_copy index_fill",
    ),
    "_functions.masks": Names(
        both="masked_fill masked_select masked_scatter nonzero take_along_dim",
        functions="fill",
        inplace="masked_scatter",
    ),
    "_functions.scattering": Names(
        both="scatter scatter_add scatter_reduce",
        inplace="scatter scatter_add scatter_reduce",
    ),
    "_object.questions": Names(
        both="is_nonzero is_same_size",
        functions="is_tensor is_floating_point is_complex is_signed is_conj is_neg is_inference numel result_type real imag",
    ),
    "_functions.creation": Names(
        functions="tensor as_tensor from_numpy zeros ones empty full zeros_like ones_like empty_like full_like scalar_tensor",
        methods="new_zeros new_ones new_empty new_full",
    ),
    "_functions.ranges": Names(functions="arange linspace logspace eye"),
    "_functions.generators": Names(
        functions="Generator default_generator manual_seed seed initial_seed get_rng_state set_rng_state",
    ),
    "_functions.random_tensors": Names(functions="rand randn randint randperm rand_like randn_like randint_like"),
    "_functions.casting": Names(methods="to item tolist numpy"),
    "_aliasing.inplace": Names(
        methods="copy_ fill_ zero_ masked_fill_ detach_ requires_grad_",
        writing="fill_ zero_ detach_",
    ),
}
# loaded when one of their names is first used
LATER: dict[str, Names] = {
    "_functions.added_products": Names(
        both="addmv baddbmm addbmm addr",
        methods="addmm_ addmv_ addr_ baddbmm_ addbmm_",
        writing="addmv_",
    ),
    "_functions.cholesky": Names(both="cholesky cholesky_solve cholesky_inverse"),
    "_functions.complex_views": Names(functions="view_as_real view_as_complex"),
    "_functions.counting": Names(both="histc histogram bincount", functions="histogramdd searchsorted bucketize"),
    "_functions.cumulative": Names(both="cumsum cumprod logcumsumexp cummax cummin", methods="cumsum_ cumprod_"),
    "_functions.diagonals": Names(
        both="diag diag_embed diagflat tril triu",
        functions="tril_indices triu_indices",
        inplace="tril triu",
    ),
    "_functions.differences": Names(both="diff", functions="gradient trapezoid trapz cumulative_trapezoid"),
    "_functions.einsum": Names(functions="einsum"),
    "_functions.elements": Names(
        both="get_device",
        functions="detach range vander",
        methods="fill_diagonal_ apply_ map_ map2_ pin_memory is_set_to dim_order",
    ),
    "_functions.elementwise_pairs": Names(
        both="""fmax fmin hypot logaddexp logaddexp2 nextafter gcd lcm bitwise_left_shift bitwise_right_shift xlogy copysign
        ldexp heaviside float_power isclose allclose equal""",
        functions="polar",
        methods="float_power_",
        inplace="hypot nextafter gcd lcm bitwise_left_shift bitwise_right_shift xlogy copysign ldexp heaviside",
        writing="gcd_ lcm_ xlogy_ ldexp_",
    ),
    "_functions.elementwise_unary": Names(
        both="""acosh arccosh asinh arcsinh atanh arctanh exp2 deg2rad rad2deg frac sinc angle signbit isposinf isneginf
        isreal positive conj_physical resolve_conj resolve_neg _conj _neg_view nan_to_num logit frexp""",
        methods="acosh_ arccosh_ asinh_ arcsinh_ atanh_ arctanh_ conj_physical_",
        inplace="exp2 deg2rad rad2deg frac sinc nan_to_num logit",
        writing="""acosh_ arccosh_ asinh_ arcsinh_ atanh_ arctanh_ conj_physical_ exp2_ deg2rad_ rad2deg_ frac_ sinc_ nan_to_num_
        logit_""",
    ),
    "_functions.foreach": Names(
        functions="""_foreach_copy_ _foreach_zero_ _foreach_clone _foreach_norm _foreach_powsum _foreach_max _foreach_mm
        _amp_foreach_non_finite_check_and_unscale_ _foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_
        _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin
        _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max
        _foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_cos _foreach_cos_ _foreach_cosh
        _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp
        _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_
        _foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log_ _foreach_log10
        _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_maximum _foreach_maximum_
        _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_pow
        _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt
        _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_
        _foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan
        _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_""",
    ),
    "_functions.least_squares": Names(both="pinverse"),
    "_functions.lobpcg": Names(functions="lobpcg"),
    "_functions.lu": Names(both="lu lu_solve", functions="lu_unpack"),
    "_functions.matrix_functions": Names(both="matrix_power matrix_exp"),
    "_functions.norms": Names(both="norm dist renorm", functions="cdist pdist", inplace="renorm"),
    "_functions.positions": Names(both="take put argwhere nonzero_static", functions="unravel_index", inplace="put"),
    "_functions.products": Names(
        both="kron inner cross trace",
        functions="tensordot chain_matmul _int_mm _grouped_mm",
    ),
    "_functions.qr": Names(both="qr geqrf orgqr ormqr"),
    "_functions.random_distributions": Names(
        functions="_standard_gamma _standard_gamma_grad _sample_dirichlet _dirichlet_grad binomial",
    ),
    "_functions.random_fills": Names(
        both="bernoulli multinomial",
        functions="poisson normal",
        methods="uniform_ normal_ random_ bernoulli_ exponential_ cauchy_ log_normal_ geometric_",
    ),
    "_functions.rearrange": Names(
        both="flip fliplr flipud rot90 roll tile repeat_interleave",
        functions="constant_pad_nd",
        methods="repeat",
        spread="flip repeat tile",
    ),
    "_functions.sections": Names(both="tensor_split hsplit vsplit dsplit", spread="hsplit vsplit dsplit"),
    "_functions.segments": Names(functions="segment_reduce"),
    "_functions.selecting": Names(both="kthvalue median nanmedian mode topk aminmax"),
    "_functions.solving": Names(both="triangular_solve inverse det slogdet logdet"),
    "_functions.special": Names(
        both="erfc erfinv lgamma digamma igamma igammac polygamma mvlgamma i0",
        methods="polygamma_",
        inplace="erfc erfinv lgamma digamma igamma igammac mvlgamma i0",
        writing="erfc_ i0_",
    ),
    "_functions.stacking": Names(
        functions="""atleast_1d atleast_2d atleast_3d hstack vstack row_stack dstack column_stack block_diag meshgrid
        cartesian_prod combinations broadcast_tensors broadcast_shapes""",
        methods="sum_to_size",
        spread="sum_to_size",
    ),
    "_functions.statistics": Names(both="cov corrcoef quantile nanquantile"),
    "_functions.stft": Names(both="stft istft"),
    "_functions.strided": Names(
        both="as_strided",
        methods="unfold resize_ resize_as_ as_strided_",
        writing="resize_as_ as_strided_",
    ),
    "_functions.svd": Names(both="svd", functions="svd_lowrank pca_lowrank"),
    "_functions.unique": Names(both="unique unique_consecutive", functions="isin"),
    "_functions.variance": Names(both="var std", functions="var_mean std_mean"),
    "_functions.view_copies": Names(
        both="narrow_copy select_scatter slice_scatter diagonal_scatter as_strided_scatter",
        functions="""alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy slice_copy
        split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy
        view_copy view_as_real_copy view_as_complex_copy""",
    ),
    "_functions.windows": Names(functions="bartlett_window blackman_window hamming_window hann_window kaiser_window"),
    "_object.hashing": Names(both="hash_tensor"),
    "_storage.given_strides": Names(functions="empty_strided empty_permuted", methods="new_empty_strided"),
    "_object.exchange": Names(
        functions="asarray frombuffer from_dlpack to_dlpack",
        methods="__dlpack__ __dlpack_device__ type new is_pinned",
    ),
    "_files.saving": Names(functions="save"),
    "_files.loading": Names(functions="load"),
    "_object.old_types": Names(
        functions="""FloatTensor DoubleTensor BoolTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor
        set_default_tensor_type FloatTensor DoubleTensor HalfTensor BFloat16Tensor BoolTensor ByteTensor CharTensor
        ShortTensor IntTensor LongTensor""",
    ),
    "_object.old_names": Names(
        both="symeig eig solve lstsq",
        functions="matrix_rank",
        methods="resize resize_as xpu mtia ipu",
    ),
    "_object.dense_answers": Names(
        both="dequantize is_distributed slice_inverse",
        functions="frobenius_norm nuclear_norm",
        methods="""to_dense dense_dim sparse_dim coalesce is_coalesced indices values crow_indices col_indices ccol_indices
        row_indices const_data_ptr record_stream module_load reinforce storage_type""",
    ),
    "_storage.storages": Names(functions="UntypedStorage", methods="untyped_storage"),
    "_storage.typed_storages": Names(
        functions="""TypedStorage is_storage Storage from_file HalfStorage BFloat16Storage FloatStorage DoubleStorage
        ComplexFloatStorage ComplexDoubleStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage
        BoolStorage""",
        methods="storage _typed_storage",
    ),
    "_aliasing.setting": Names(methods="set_"),
    "_storage.sharing": Names(methods="share_memory_"),
}
# functions of the package that have a form for lists of tensors
FOREACH = """abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac
lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt
sub tan tanh trunc"""
