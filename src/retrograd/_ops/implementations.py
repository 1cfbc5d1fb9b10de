"""How operations that NumPy lacks are computed: scipy's functions, and half precision in float32."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module

from .._core.numpy_namespace import HALVES, SINGLE, cast, numpy_namespace
from .._native.library import Library
from .._native.program import formula
from .._thresholds import NATIVE_SLOW

numpy = numpy_namespace.module


@cache
def scipy_function(xp, name):
    """Return a function of scipy.special for one kind of array. scipy takes 60 ms to import: only when asked for."""
    on_cpu = getattr(import_module("scipy.special"), name)
    if xp is numpy_namespace:
        return on_cpu
    return getattr(import_module("cupyx.scipy.special"), name, None) or _there_and_back(on_cpu)


def _there_and_back(function):
    """Let a function of NumPy arrays work on those of a device; CuPy lacks a few."""

    def call(*arrays):
        cupy = import_module("cupy")
        out = function(*[cupy.asnumpy(array) for array in arrays])
        return tuple(map(cupy.asarray, out)) if isinstance(out, tuple) else cupy.asarray(out)

    return call


def from_scipy(name):
    """Return the implementation of an elementwise operation that scipy.special has under `name`."""
    return wide(lambda xp, *arrays: scipy_function(xp, name)(*arrays))


def with_kernel(small, kernel):
    """Return an implementation of one array: `small`, and for large ones a kernel made from another formula. See Note [Formulas]."""
    small = getattr(small, "plain", small)  # formulas have arrays of full precision
    made = formula(lambda xp, x: kernel(xp, x) if xp.module is None else small(xp, x))
    made.has_steps = False
    return made


def named_kernel(name, scipy_name=None):
    """Return an implementation: scipy's function, and for large arrays that of `_native/math.py` under this name."""
    return with_kernel(from_scipy(scipy_name or name), lambda xp, x: getattr(xp, name)(x))


def typed(implementation):
    """Let an implementation see NumPy's scalars in place of Python's numbers."""

    def called(xp, x, *rest, **params):
        for y in rest:
            if type(y) is not numpy.ndarray:
                break
        else:  # most of the time
            if type(x) is numpy.ndarray:
                return implementation(xp, x, *rest, **params)
        if not hasattr(x, "dtype"):
            x = rest[0].dtype.type(x)
        rest = [y if hasattr(y, "dtype") else x.dtype.type(y) for y in rest]
        return implementation(xp, x, *rest, **params)

    called.formula = getattr(implementation, "formula", None)
    return called


def wide(implementation):
    """Let an implementation see float32 where it is given half precision, and round its result once."""

    def widened(xp, x, *rest, **params):
        dtype = x.dtype
        if dtype.itemsize == 2 and dtype in HALVES:
            rest = [cast(y, SINGLE) if y.dtype in HALVES else y for y in rest]
            return cast(implementation(xp, cast(x, SINGLE), *rest, **params), dtype)
        return implementation(xp, x, *rest, **params)

    typed_too = typed(widened)

    def called(xp, x, *rest, **params):
        if not rest and type(x) is numpy.ndarray and x.dtype.itemsize > 2:  # most of the time
            return implementation(xp, x, **params)
        return typed_too(xp, x, *rest, **params)

    called.plain = implementation  # for those who know that they have arrays of full precision
    return called


def ufunc(name):
    """Return the implementation that NumPy has under a name, of two arrays; large ones go through a kernel."""
    few = wide(lambda xp, *arrays: getattr(xp.module, name)(*arrays))
    kernels, function = Library(name, partial(few, numpy_namespace)), getattr(numpy, name)

    def implementation(xp, *arrays):
        return kernels.of_any_size(*arrays) if xp is numpy_namespace else few(xp, *arrays)

    def plain(xp, x, y):
        return function(x, y) if x.size < NATIVE_SLOW > y.size else kernels.of_any_size(x, y)

    implementation.plain = plain  # for those who know that they have arrays of full precision
    return implementation


def is_complex(x):
    """Tell whether a value of a rule is complex; a Tensor's dtype is torch's, an array's is NumPy's."""
    return x.dtype.kind == "c" if isinstance(x.dtype, numpy.dtype) else x.dtype.is_complex
