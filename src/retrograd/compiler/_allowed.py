"""What the proof of purity lets a function call: tables of functions and methods without effects, and of the library's own.

Everything that is not here is refused. Of the library's functions those that only compute with tensors are allowed, and those
whose effects the recorder sees and plays again: writes into tensors, random numbers, gradients, steps of optimizers. Functions that
change settings, read or write files, or hand out memory are not.
"""

from __future__ import annotations

import builtins
import cmath
import itertools
import math
import operator
import sys
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

# ---- functions of Python that compute with simple values only ----
ON_NUMBERS: dict[Any, type | None] = {  # and what they return, where it is always the same
    builtins.abs: None,
    builtins.round: None,
    builtins.pow: None,
    builtins.divmod: None,
    builtins.ord: int,
    builtins.chr: str,
    builtins.bin: str,
    builtins.hex: str,
    builtins.oct: str,
}
ON_NUMBERS |= {value: None for name, value in vars(math).items() if name[0] != "_" and callable(value)}
ON_NUMBERS |= {value: None for name, value in vars(cmath).items() if name[0] != "_" and callable(value)}
# NumPy's functions of numbers; on arrays they are refused, because nobody sees them
ON_NUMBERS |= {
    getattr(np, name): None
    for name in "sqrt exp log log2 log10 log1p expm1 sin cos tan tanh arctan arctan2 power floor ceil abs sign deg2rad rad2deg".split()  # noqa: SIM905
}
OPERATORS = {
    value
    for name, value in vars(operator).items()
    if name[0] != "_" and callable(value) and not name.startswith("i") and not isinstance(value, type)
} - {operator.setitem, operator.delitem, operator.call if hasattr(operator, "call") else None}
CHAINED = {itertools.chain, itertools.islice, itertools.repeat, itertools.cycle, itertools.count}
GROUPED: set[Any] = {
    itertools.product,
    itertools.zip_longest,
    itertools.combinations,
    itertools.permutations,
    itertools.combinations_with_replacement,
    itertools.pairwise,
}
if sys.version_info >= (3, 12):
    GROUPED.add(itertools.batched)

# ---- methods of builtin containers ----
READING = frozenset("get items keys values index count copy".split())  # noqa: SIM905
OF_LOCALS = READING | frozenset(
    """append extend insert pop remove clear sort reverse update setdefault popitem add discard union intersection difference
    symmetric_difference issubset issuperset isdisjoint intersection_update difference_update symmetric_difference_update
    __len__ __getitem__ __contains__ __iter__""".split()  # noqa: SIM905
)

# ---- the library ----
NAMESPACES = (
    "",
    "nn.functional",
    "linalg",
    "fft",
    "special",
    "func",
    "_VF",
)
DENIED = frozenset(
    """save load seed manual_seed initial_seed get_rng_state set_rng_state compile from_file from_numpy frombuffer from_dlpack to_dlpack
    as_torch find functions cache init_num_threads thread_safe_generator use_deterministic_algorithms get_device_module
    autocast_increment_nesting autocast_decrement_nesting clear_autocast_cache get_default_device numel_of asarray
    functionalize debug_unwrap linearize make_fx get_num_threads get_num_interop_threads is_storage sym_int sym_float sym_max
    sym_min sym_not sym_ite sym_sqrt sym_sum as_strided as_strided_ as_strided_copy as_strided_scatter""".split()  # noqa: SIM905
)
# functions that tell settings, which no guard knows
SETTINGS = frozenset(
    """are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode
    get_float32_matmul_precision is_warn_always_enabled get_autocast_dtype get_autocast_cpu_dtype get_autocast_gpu_dtype
    is_autocast_cache_enabled is_anomaly_enabled is_anomaly_check_nan_enabled""".split()  # noqa: SIM905
)
# further functions, by the module in which they are public
FURTHER = {
    "autograd": "grad backward",
    "autograd.functional": "jacobian hessian vjp jvp hvp vhp",
    "nn.utils": "clip_grad_norm_ clip_grad_value_ clip_grad_norm get_total_norm clip_grads_with_norm_ parameters_to_vector",
    "nn.utils.clip_grad": "clip_grad_norm_ clip_grad_value_ clip_grad_norm get_total_norm clip_grads_with_norm_",
    "nn.utils.rnn": "pad_sequence pack_sequence pack_padded_sequence pad_packed_sequence unpad_sequence unpack_sequence",
    "nn.utils.convert_parameters": "parameters_to_vector",
    "utils.checkpoint": "checkpoint checkpoint_sequential",
    "utils._pytree": "tree_map tree_leaves tree_flatten tree_map_only",
    "nn.functional": "",
    "func": "functional_call stack_module_state",
    "nn.attention.flex_attention": "flex_attention",
}
CONTEXTS = {
    "autograd.grad_mode": "no_grad enable_grad set_grad_enabled inference_mode",
    "amp.autocast_mode": "autocast",
    "autograd.profiler": "record_function",
}
# closures that the library makes around a user's function
WRAPPERS = ("autograd.grad_mode", "func.", "amp.", "autograd.functional", "autograd.function")

RANDOM = frozenset(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli bernoulli_ multinomial normal normal_ uniform_
    exponential_ geometric_ log_normal_ cauchy_ random_ poisson binomial dropout dropout_ dropout1d dropout2d dropout3d alpha_dropout
    alpha_dropout_ feature_dropout feature_alpha_dropout native_dropout rrelu rrelu_ gumbel_softmax fractional_max_pool2d
    fractional_max_pool3d scaled_dot_product_attention multi_head_attention_forward""".split()  # noqa: SIM905
)
VALUES = frozenset(
    """item tolist __bool__ __float__ __int__ __index__ __complex__ equal allclose is_nonzero __len__ nonzero unique
    unique_consecutive masked_select __contains__ argwhere""".split()  # noqa: SIM905
)
_OFFSET = "depends on where in its memory a tensor begins, which no guard knows"
_GRAPH = "shows where in a graph a tensor stands, which no guard knows"
# Methods and attributes of tensors that show what a program without Python does not have, or keep something.
DENIED_OF_TENSORS = {
    "numpy": "hands out the memory of a tensor",
    "__array__": "hands out the memory of a tensor",
    "__dlpack__": "hands out the memory of a tensor",
    "data_ptr": "hands out the address of a tensor",
    "storage": "hands out the memory of a tensor",
    "untyped_storage": "hands out the memory of a tensor",
    "_typed_storage": "hands out the memory of a tensor",
    "share_memory_": "moves the memory of a tensor",
    "set_": "exchanges the memory of a tensor",
    "register_hook": "registers a hook",
    "register_post_accumulate_grad_hook": "registers a hook",
    "apply_": "calls a function for every element",
    "map_": "calls a function for every element",
    "map2_": "calls a function for every element",
    "grad_fn": "shows a node of the graph, which a compiled function does not have",
    "_version": "shows the number of writes",
    "_backward_hooks": "shows hooks",
    "__dict__": "shows a dictionary",
    "__reduce_ex__": "pickles a tensor",
    "__deepcopy__": "copies a tensor by pickling",
    "__setstate__": "sets the state of a tensor",
    "retain_grad": "lets a tensor keep its gradient, which a compiled function has no node for",
    "as_strided": _OFFSET,
    "as_strided_": _OFFSET,
    "as_strided_copy": _OFFSET,
    "as_strided_scatter": _OFFSET,
    "storage_offset": _OFFSET,
    "is_set_to": _OFFSET,
    "is_leaf": _GRAPH,
    "retains_grad": _GRAPH,
    "output_nr": _GRAPH,
    "grad_dtype": _GRAPH,
    "is_shared": "shows what memory a tensor has, which no guard knows",
    "is_pinned": "shows what memory a tensor has, which no guard knows",
}
# What results that are no tensors have: named tuples, sizes, dtypes, devices.
OF_RESULTS = frozenset(
    """values indices eigenvalues eigenvectors solution residuals rank singular_values Q R U S V Vh L P LU LD pivots info sign logabsdet
    mantissa exponent numel is_floating_point is_complex itemsize index type eps max min tiny smallest_normal bits resolution
    items keys get count data batch_sizes sorted_indices unsorted_indices is_signed""".split()  # noqa: SIM905
)
OPERATOR_NAMES = frozenset(name.strip("_") for name in vars(operator))


def denied_of_tensors(name: str) -> str:
    """Say why a pure function may not use a method or an attribute of tensors; nothing if it may."""
    if name in DENIED_OF_TENSORS:
        return DENIED_OF_TENSORS[name]
    if not name.startswith("_") or name in VALUES:
        return ""
    plain = name.strip("_")
    if name == f"__{plain}__" and (plain in OPERATOR_NAMES or (plain[0] in "ri" and plain[1:] in OPERATOR_NAMES)):
        return ""
    return "is not public"


WRITTEN_OF_TENSORS = frozenset({"grad", "data", "requires_grad"})
# Methods of the context of a custom Function; what else it has was put there, or is a tuple of tensors or flags.
OF_CONTEXTS = frozenset(
    "save_for_backward save_for_forward mark_dirty mark_shared_storage mark_non_differentiable set_materialize_grads".split()  # noqa: SIM905
)
MODULE_READS = frozenset(
    """parameters named_parameters buffers named_buffers children named_children modules named_modules get_submodule get_parameter
    get_buffer keys items values __len__ __iter__ __getitem__ __contains__""".split()  # noqa: SIM905
)
# Methods of library objects whose effects the recorder plays again, or lets happen after the program.
STEPS = {
    "Module": frozenset({"zero_grad", "requires_grad_"}),
    "Optimizer": frozenset({"step", "zero_grad"}),
    "LRScheduler": frozenset({"step"}),
    "GradScaler": frozenset({"scale", "unscale_", "step", "update"}),
}
# Methods of texts by what they return; the others return anything.
OF_TEXTS: dict[str, type] = dict.fromkeys(
    """upper lower strip lstrip rstrip title capitalize casefold swapcase replace format format_map join removeprefix removesuffix
    ljust rjust center zfill expandtabs translate""".split(),  # noqa: SIM905
    str,
)
OF_TEXTS |= dict.fromkeys("find rfind index rindex count".split(), int)  # noqa: SIM905
OF_TEXTS |= dict.fromkeys(
    ("startswith", "endswith", "isalpha", "isdigit", "isupper", "islower", "isspace", "isnumeric"), bool
)


def _module(path: str) -> Any:
    package = __package__.partition(".")[0]
    try:
        return import_module(f"{package}.{path}" if path else package)
    except ImportError:
        return None


def _public(path: str, name: str) -> Any:
    return getattr(_module(path), name, None)


def _names(path: str, function: Any) -> set[str]:
    """Return the names under which a module offers a function."""
    module = _module(path)
    own = getattr(function, "__name__", "")
    names = {name for name, value in vars(module).items() if value is function} if module is not None else set()
    return names | ({own} if getattr(module, own, None) is function else set())


def is_allowed_function(function: Any) -> bool:
    """Tell whether a function is one of the library's that a pure function may call."""
    if not isinstance(function, FunctionType) or function.__name__.startswith("set_"):
        return False
    if function.__name__ in DENIED or function.__name__ in SETTINGS:
        return False
    for path in NAMESPACES:
        names = _names(path, function)
        if names:
            return all(name not in DENIED | SETTINGS and not name.startswith(("set_", "_")) for name in names)
    return any(_names(path, function) & set(names.split()) for path, names in FURTHER.items())


def is_context(cls: type) -> bool:
    """Tell whether a class is a context manager of the library that a pure function may enter."""
    name = cls.__name__
    return any(name in names.split() and _public(path, name) is cls for path, names in CONTEXTS.items()) or (
        name == "autocast" and _public("amp", name) is cls
    )


def is_wrapper(function: FunctionType) -> bool:
    """Tell whether a function is a closure that the library makes around a user's."""
    _, _, path = (function.__globals__.get("__name__") or "").partition(".")
    return function.__closure__ is not None and path.startswith(WRAPPERS)
