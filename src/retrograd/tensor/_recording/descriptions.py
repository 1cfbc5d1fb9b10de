"""What public functions say of themselves that are made for a family: elementwise ones, makers of tensors, Fourier transforms.

The examples are tested (tests/docs/docstrings.py), also on torch. An elementwise function without an entry says only its name.
"""

from __future__ import annotations

# name: sentence, what the tensor is made of, what is printed
UNARY = {
    "neg": ("Return the negative of each element.", "[1.0, -2.0, 0.0]", "tensor([-1.,  2., -0.])"),
    "exp": ("Return e to the power of each element.", "[0.0, 1.0, -1.0]", "tensor([1.0000, 2.7183, 0.3679])"),
    "expm1": (
        "Return exp(x) - 1 of each element x, exact also where x is close to 0.",
        "[0.0, 1e-8, 1.0]",
        "tensor([0.0000e+00, 1.0000e-08, 1.7183e+00])",
    ),
    "exp2": ("Return 2 to the power of each element.", "[0.0, 1.0, 3.0]", "tensor([1., 2., 8.])"),
    "log": (
        "Return the natural logarithm of each element; of negative numbers it is NaN.",
        "[1.0, 10.0, 0.0]",
        "tensor([0.0000, 2.3026,   -inf])",
    ),
    "log1p": (
        "Return log(1 + x) of each element x, exact also where x is close to 0.",
        "[0.0, 1e-8, 1.0]",
        "tensor([0.0000e+00, 1.0000e-08, 6.9315e-01])",
    ),
    "log2": ("Return the logarithm to base 2 of each element.", "[1.0, 8.0, 0.5]", "tensor([ 0.,  3., -1.])"),
    "log10": (
        "Return the logarithm to base 10 of each element.",
        "[1.0, 2.0, 5.0]",
        "tensor([0.0000, 0.3010, 0.6990])",
    ),
    "sqrt": (
        "Return the square root of each element; of negative numbers it is NaN.",
        "[4.0, 2.0, -1.0]",
        "tensor([2.0000, 1.4142,    nan])",
    ),
    "rsqrt": ("Return 1 / sqrt(x) of each element x.", "[4.0, 0.25, 0.0]", "tensor([0.5000, 2.0000,    inf])"),
    "sin": (
        "Return the sine of each element, an angle in radians.",
        "[0.0, 1.0, -1.0]",
        "tensor([ 0.0000,  0.8415, -0.8415])",
    ),
    "cos": (
        "Return the cosine of each element, an angle in radians.",
        "[0.0, 1.0, -1.0]",
        "tensor([1.0000, 0.5403, 0.5403])",
    ),
    "tan": (
        "Return the tangent of each element, an angle in radians.",
        "[0.0, 1.0, -1.0]",
        "tensor([ 0.0000,  1.5574, -1.5574])",
    ),
    "sinh": ("Return the hyperbolic sine of each element.", "[0.0, 1.0, -1.0]", "tensor([ 0.0000,  1.1752, -1.1752])"),
    "cosh": ("Return the hyperbolic cosine of each element.", "[0.0, 1.0, -1.0]", "tensor([1.0000, 1.5431, 1.5431])"),
    "tanh": (
        "Return the hyperbolic tangent of each element, between -1 and 1.",
        "[0.0, 1.0, -10.0]",
        "tensor([ 0.0000,  0.7616, -1.0000])",
    ),
    "asin": (
        "Return the angle between -pi/2 and pi/2 whose sine is each element; outside of [-1, 1] it is NaN.",
        "[0.0, 1.0, 0.5]",
        "tensor([0.0000, 1.5708, 0.5236])",
    ),
    "acos": (
        "Return the angle between 0 and pi whose cosine is each element; outside of [-1, 1] it is NaN.",
        "[0.0, 1.0, 0.5]",
        "tensor([1.5708, 0.0000, 1.0472])",
    ),
    "atan": (
        "Return the angle between -pi/2 and pi/2 whose tangent is each element.",
        "[0.0, 1.0, -1.0]",
        "tensor([ 0.0000,  0.7854, -0.7854])",
    ),
    "asinh": (
        "Return the number whose hyperbolic sine is each element.",
        "[0.0, 1.0, -1.0]",
        "tensor([ 0.0000,  0.8814, -0.8814])",
    ),
    "acosh": (
        "Return the number whose hyperbolic cosine is each element; below 1 it is NaN.",
        "[1.0, 2.0, 10.0]",
        "tensor([0.0000, 1.3170, 2.9932])",
    ),
    "atanh": (
        "Return the number whose hyperbolic tangent is each element; at -1 and 1 it is infinite.",
        "[0.0, 0.5, 1.0]",
        "tensor([0.0000, 0.5493,    inf])",
    ),
    "sigmoid": (
        "Return 1 / (1 + exp(-x)) of each element x, between 0 and 1.",
        "[0.0, 2.0, -2.0]",
        "tensor([0.5000, 0.8808, 0.1192])",
    ),
    "relu": ("Replace what is negative by 0.", "[-1.0, 0.0, 2.0]", "tensor([0., 0., 2.])"),
    "erf": (
        "Return the error function of each element, for x >= 0 the probability that a normal variable is within x * sqrt(2) of its mean.",
        "[0.0, 1.0, -1.0]",
        "tensor([ 0.0000,  0.8427, -0.8427])",
    ),
    "erfc": (
        "Return 1 - erf(x) of each element x, exact also where it is close to 0.",
        "[0.0, 1.0, 3.0]",
        "tensor([1.0000e+00, 1.5730e-01, 2.2090e-05])",
    ),
    "erfinv": (
        "Return the number whose error function is each element; at -1 and 1 it is infinite.",
        "[0.0, 0.5, 1.0]",
        "tensor([0.0000, 0.4769,    inf])",
    ),
    "lgamma": (
        "Return the logarithm of the absolute value of the gamma function of each element.",
        "[1.0, 4.0, 0.5]",
        "tensor([0.0000, 1.7918, 0.5724])",
    ),
    "digamma": (
        "Return the derivative of `lgamma` at each element.",
        "[1.0, 2.0, 0.5]",
        "tensor([-0.5772,  0.4228, -1.9635])",
    ),
    "reciprocal": ("Return 1 / x of each element x.", "[2.0, 0.5, 0.0]", "tensor([0.5000, 2.0000,    inf])"),
    "abs": (
        "Return the absolute value of each element; of complex numbers it is their length.",
        "[1.5, -2.0, 0.0]",
        "tensor([1.5000, 2.0000, 0.0000])",
    ),
    "sign": ("Return -1, 0 or 1 for each element: its sign.", "[1.5, -2.0, 0.0]", "tensor([ 1., -1.,  0.])"),
    "sgn": (
        "Return the sign of each element; of a complex number it is the number of length 1 in its direction.",
        "[1.5, -2.0, 0.0]",
        "tensor([ 1., -1.,  0.])",
    ),
    "floor": (
        "Return the largest whole number that is not above each element.",
        "[1.5, -1.5, 2.0]",
        "tensor([ 1., -2.,  2.])",
    ),
    "ceil": (
        "Return the smallest whole number that is not below each element.",
        "[1.5, -1.5, 2.0]",
        "tensor([ 2., -1.,  2.])",
    ),
    "trunc": ("Cut off what stands behind the point: round towards 0.", "[1.5, -1.5, 2.0]", "tensor([ 1., -1.,  2.])"),
    "frac": (
        "Return what stands behind the point, with the sign of the number.",
        "[1.5, -1.25, 2.0]",
        "tensor([ 0.5000, -0.2500,  0.0000])",
    ),
    "isnan": (
        "Tell for each element whether it is NaN.",
        '[1.0, float("nan"), float("inf")]',
        "tensor([False,  True, False])",
    ),
    "isinf": (
        "Tell for each element whether it is infinite.",
        '[1.0, float("nan"), float("-inf")]',
        "tensor([False, False,  True])",
    ),
    "isfinite": (
        "Tell for each element whether it is a number, neither NaN nor infinite.",
        '[1.0, float("nan"), float("inf")]',
        "tensor([ True, False, False])",
    ),
    "logical_not": ("Tell for each element whether it is zero, or False.", "[True, False]", "tensor([False,  True])"),
    "bitwise_not": ("Invert the bits of integers; of booleans it is `not`.", "[0, 5, -1]", "tensor([-1, -6,  0])"),
    "deg2rad": ("Turn degrees into radians.", "[0.0, 90.0, 180.0]", "tensor([0.0000, 1.5708, 3.1416])"),
    "rad2deg": ("Turn radians into degrees.", "[0.0, 1.0, 3.1416]", "tensor([  0.0000,  57.2958, 180.0004])"),
    "signbit": (
        "Tell for each element whether its sign bit is set: negative numbers, and -0.",
        "[1.0, -2.0, -0.0]",
        "tensor([False,  True,  True])",
    ),
    "sinc": (
        "Return sin(pi x) / (pi x) of each element x; 1 at 0.",
        "[0.0, 0.5, 1.5]",
        "tensor([ 1.0000,  0.6366, -0.2122])",
    ),
    "angle": (
        "Return the angle of each element in the plane of complex numbers: 0 or pi for real ones.",
        "[1.0, -1.0, 0.0]",
        "tensor([0.0000, 3.1416, 0.0000])",
    ),
}

# name: sentence, what the two tensors are made of, what is printed
BINARY = {
    "atan2": (
        "Return the angle between -pi and pi of the point (other, input): the tangent is input / other.",
        "[1.0, -1.0, 0.0]",
        "[1.0, 1.0, -1.0]",
        "tensor([ 0.7854, -0.7854,  3.1416])",
    ),
    "maximum": (
        "Return the larger of two elements. Where one is NaN, the result is; where they are equal, each gets half of the gradient.",
        "[1.0, 5.0]",
        "[3.0, 2.0]",
        "tensor([3., 5.])",
    ),
    "minimum": (
        "Return the smaller of two elements. Where one is NaN, the result is; where they are equal, each gets half of the gradient.",
        "[1.0, 5.0]",
        "[3.0, 2.0]",
        "tensor([1., 2.])",
    ),
    "fmax": (
        "Return the larger of two elements; where one is NaN, the other.",
        '[1.0, float("nan")]',
        "[3.0, 2.0]",
        "tensor([3., 2.])",
    ),
    "fmin": (
        "Return the smaller of two elements; where one is NaN, the other.",
        '[1.0, float("nan")]',
        "[3.0, 2.0]",
        "tensor([1., 2.])",
    ),
    "hypot": (
        "Return sqrt(input**2 + other**2), without overflow on the way.",
        "[3.0, 5.0]",
        "[4.0, 12.0]",
        "tensor([ 5., 13.])",
    ),
    "logaddexp": (
        "Return log(exp(input) + exp(other)), without overflow on the way.",
        "[0.0, 1000.0]",
        "[0.0, 1000.0]",
        "tensor([6.9315e-01, 1.0007e+03])",
    ),
    "logical_and": (
        "Tell whether both elements are True, or not zero.",
        "[True, True, False]",
        "[True, False, False]",
        "tensor([ True, False, False])",
    ),
    "logical_or": (
        "Tell whether at least one of two elements is True, or not zero.",
        "[True, True, False]",
        "[True, False, False]",
        "tensor([ True,  True, False])",
    ),
    "logical_xor": (
        "Tell whether exactly one of two elements is True, or not zero.",
        "[True, True, False]",
        "[True, False, False]",
        "tensor([False,  True, False])",
    ),
    "eq": ("Tell whether two elements are equal.", "[1, 2, 3]", "[1, 0, 3]", "tensor([ True, False,  True])"),
    "ne": ("Tell whether two elements differ.", "[1, 2, 3]", "[1, 0, 3]", "tensor([False,  True, False])"),
    "lt": (
        "Tell whether the first element is the smaller one.",
        "[1, 2, 3]",
        "[2, 2, 2]",
        "tensor([ True, False, False])",
    ),
    "le": (
        "Tell whether the first element is smaller than the second, or equal.",
        "[1, 2, 3]",
        "[2, 2, 2]",
        "tensor([ True,  True, False])",
    ),
    "gt": (
        "Tell whether the first element is the larger one.",
        "[1, 2, 3]",
        "[2, 2, 2]",
        "tensor([False, False,  True])",
    ),
    "ge": (
        "Tell whether the first element is larger than the second, or equal.",
        "[1, 2, 3]",
        "[2, 2, 2]",
        "tensor([False,  True,  True])",
    ),
    "bitwise_and": (
        "Return the bits that two integers share; of booleans it is `and`.",
        "[12, 10]",
        "[10, 3]",
        "tensor([8, 2])",
    ),
    "bitwise_or": (
        "Return the bits that either of two integers has; of booleans it is `or`.",
        "[12, 10]",
        "[10, 3]",
        "tensor([14, 11])",
    ),
    "bitwise_xor": (
        "Return the bits that exactly one of two integers has; of booleans it is whether they differ.",
        "[12, 10]",
        "[10, 3]",
        "tensor([6, 9])",
    ),
    "bitwise_left_shift": (
        "Move the bits of an integer to the left: multiply by 2 ** other.",
        "[1, 3]",
        "[4, 1]",
        "tensor([16,  6])",
    ),
    "bitwise_right_shift": (
        "Move the bits of an integer to the right: divide by 2 ** other, rounding down.",
        "[16, 7]",
        "[4, 1]",
        "tensor([1, 3])",
    ),
    "gcd": ("Return the greatest common divisor of two integers.", "[12, 9]", "[18, 6]", "tensor([6, 3])"),
    "lcm": ("Return the least common multiple of two integers.", "[4, 6]", "[6, 9]", "tensor([12, 18])"),
    "nextafter": (
        "Return the next number after `input` in the direction of `other`, the closest that the dtype has.",
        "[1.0]",
        "[2.0]",
        "tensor([1.0000])",
    ),
}


# name: the whole docstring, of functions that are made for a family
MADE = {
    "zeros": """Make a tensor of zeros.

    Args:
        *shape: sizes, one by one or in a sequence
        size: the sizes, by name
        dtype: `torch.get_default_dtype()` if it is not given
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        out: where to write the result

    Example:
        >>> torch.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """,
    "ones": """Make a tensor of ones.

    Args:
        *shape: sizes, one by one or in a sequence
        size: the sizes, by name
        dtype: `torch.get_default_dtype()` if it is not given
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        out: where to write the result

    Example:
        >>> torch.ones((2,), dtype=torch.int64)
        tensor([1, 1])
    """,
    "empty": """Make a tensor whose elements are whatever its memory holds.

    Args:
        *shape: sizes, one by one or in a sequence
        size: the sizes, by name
        dtype: `torch.get_default_dtype()` if it is not given
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory
        out: where to write the result

    Example:
        >>> torch.empty(2, 3).shape
        torch.Size([2, 3])
    """,
    "zeros_like": """Make a tensor of zeros with the shape, dtype and device of another.

    Args:
        input: the other tensor
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> torch.zeros_like(torch.tensor([1, 2]))
        tensor([0, 0])
    """,
    "ones_like": """Make a tensor of ones with the shape, dtype and device of another.

    Args:
        input: the other tensor
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> torch.ones_like(torch.tensor([1, 2]), dtype=torch.float64)
        tensor([1., 1.], dtype=torch.float64)
    """,
    "empty_like": """Make a tensor with the shape, dtype and device of another, whose elements are whatever its memory holds.

    Args:
        input: the other tensor
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> torch.empty_like(torch.zeros(2, 3)).shape
        torch.Size([2, 3])
    """,
    "new_zeros": """Make a tensor of zeros with this one's dtype and device.

    Args:
        *size: sizes, one by one or in a sequence
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.tensor([1, 2]).new_zeros(3)
        tensor([0, 0, 0])
    """,
    "new_ones": """Make a tensor of ones with this one's dtype and device.

    Args:
        *size: sizes, one by one or in a sequence
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.tensor([1.0, 2.0]).new_ones(2, 1)
        tensor([[1.],
                [1.]])
    """,
    "new_empty": """Make a tensor with this one's dtype and device, whose elements are whatever its memory holds.

    Args:
        *size: sizes, one by one or in a sequence
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.tensor([1, 2]).new_empty(2, 3).dtype
        torch.int64
    """,
    "rand": """Make a tensor of random numbers, uniform in [0, 1).

    Args:
        *shape: sizes, one by one or in a sequence
        size: the sizes, by name
        generator: the stream of random numbers; the default one if it is not given
        dtype: `torch.get_default_dtype()` if it is not given
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        out: where to write the result

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2, 2)
        tensor([[0.4963, 0.7682],
                [0.0885, 0.1320]])
    """,
    "randn": """Make a tensor of random numbers from the standard normal distribution.

    Args:
        *shape: sizes, one by one or in a sequence
        size: the sizes, by name
        generator: the stream of random numbers; the default one if it is not given
        dtype: `torch.get_default_dtype()` if it is not given
        device: where the tensor is
        requires_grad: whether gradients are collected for it
        out: where to write the result

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randn(3)
        tensor([ 1.5410, -0.2934, -2.1788])
    """,
    "rand_like": """Make a tensor of random numbers, uniform in [0, 1), with the shape, dtype and device of another.

    Args:
        input: the other tensor
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.rand_like(torch.zeros(2))
        tensor([0.4963, 0.7682])
    """,
    "randn_like": """Make a tensor of normal random numbers with the shape, dtype and device of another.

    Args:
        input: the other tensor
        dtype: another dtype
        device: another device
        requires_grad: whether gradients are collected for it
        memory_format: the order of the dimensions in memory

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.randn_like(torch.zeros(2))
        tensor([ 1.5410, -0.2934])
    """,
    "fft.fft": """Compute the discrete Fourier transform along a dimension.

    Args:
        input: a tensor of numbers, real or complex
        n: cut or fill the signal with zeros to this length
        dim: the dimension; the last by default
        norm: "backward" (no factor), "forward" (1/n) or "ortho" (1/sqrt(n))
        out: where to write the result

    Example:
        >>> torch.fft.fft(torch.tensor([1.0, 0.0, -1.0, 0.0]))
        tensor([0.+0.j, 2.+0.j, 0.+0.j, 2.-0.j])
    """,
    "fft.ifft": """Compute the inverse of the discrete Fourier transform along a dimension.

    Args:
        input: a tensor of numbers, real or complex
        n: cut or fill the signal with zeros to this length
        dim: the dimension; the last by default
        norm: "backward" (1/n), "forward" (no factor) or "ortho" (1/sqrt(n))
        out: where to write the result

    Example:
        >>> torch.fft.ifft(torch.tensor([0.0, 2.0, 0.0, 2.0])).real
        tensor([ 1.,  0., -1.,  0.])
    """,
    "fft.rfft": """Compute the discrete Fourier transform of real numbers along a dimension: the half that is not redundant.

    Args:
        input: a tensor of real numbers
        n: cut or fill the signal with zeros to this length
        dim: the dimension; the last by default
        norm: "backward" (no factor), "forward" (1/n) or "ortho" (1/sqrt(n))
        out: where to write the result

    Returns:
        n // 2 + 1 complex numbers along the dimension.

    Example:
        >>> torch.fft.rfft(torch.tensor([1.0, 0.0, -1.0, 0.0]))
        tensor([0.+0.j, 2.+0.j, 0.+0.j])
    """,
    "fft.irfft": """Compute the real signal of which `rfft` gives the input.

    Args:
        input: the half of a transform, complex
        n: the length of the signal; 2 (m - 1) for an input of m numbers, if it is not given
        dim: the dimension; the last by default
        norm: "backward" (1/n), "forward" (no factor) or "ortho" (1/sqrt(n))
        out: where to write the result

    Example:
        >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0])), n=3)
        tensor([1., 2., 3.])
    """,
    "fft.fft2": """Compute the discrete Fourier transform along two dimensions.

    Args:
        input: a tensor of numbers, real or complex
        s: cut or fill with zeros to these sizes
        dim: the dimensions; the last two by default
        norm: "backward" (no factor), "forward" (1/n) or "ortho" (1/sqrt(n))
        out: where to write the result

    Example:
        >>> torch.fft.fft2(torch.ones(2, 2)).real
        tensor([[4., 0.],
                [0., 0.]])
    """,
    "fft.fftn": """Compute the discrete Fourier transform along several dimensions.

    Args:
        input: a tensor of numbers, real or complex
        s: cut or fill with zeros to these sizes
        dim: the dimensions; all by default
        norm: "backward" (no factor), "forward" (1/n) or "ortho" (1/sqrt(n))
        out: where to write the result

    Example:
        >>> torch.fft.fftn(torch.ones(2, 2, 2)).abs().sum()
        tensor(8.)
    """,
    "fft.fftfreq": """Return the frequencies that belong to the numbers of `fft`.

    Args:
        n: the length of the signal
        d: the distance of two samples
        out: where to write the result
        dtype: a float dtype
        device: where the result is
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """,
    "fft.rfftfreq": """Return the frequencies that belong to the numbers of `rfft`.

    Args:
        n: the length of the signal
        d: the distance of two samples
        out: where to write the result
        dtype: a float dtype
        device: where the result is
        requires_grad: whether gradients are collected for it

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """,
    "is_floating_point": """Tell whether the elements are floats: not integers, booleans or complex numbers.

    Args:
        input: a tensor

    Example:
        >>> torch.is_floating_point(torch.ones(2)), torch.is_floating_point(torch.tensor([1]))
        (True, False)
    """,
    "is_complex": """Tell whether the elements are complex numbers.

    Args:
        input: a tensor

    Example:
        >>> torch.is_complex(torch.tensor([1j]))
        True
    """,
    "numel": """Return the number of elements.

    Args:
        input: a tensor

    Example:
        >>> torch.numel(torch.ones(2, 3))
        6
    """,
}


def of_one(name: str, integers_to_float: bool) -> str:
    """Return the docstring of an elementwise function of one tensor."""
    if name not in UNARY:
        return f"Compute {name} of each element."
    sentence, numbers, printed = UNARY[name]
    result = " Integers become floats." if integers_to_float else ""
    return f"""{sentence}

    Args:
        input: a tensor of any shape
        out: where to write the result

    Returns:
        A tensor of the same shape.{result}

    Example:
        >>> torch.{name}(torch.tensor({numbers}))
        {printed}
    """


def of_two(name: str, takes_numbers: bool) -> str:
    """Return the docstring of an elementwise function of two tensors."""
    if name not in BINARY:
        return f"Compute {name} of two tensors, element by element, broadcasting their shapes."
    sentence, first, second, printed = BINARY[name]
    other = "a tensor, or a number" if takes_numbers else "a tensor"
    return f"""{sentence}

    Args:
        input: a tensor
        other: {other}
        out: where to write the result

    Returns:
        A tensor of the shape to which the two shapes broadcast.

    Example:
        >>> torch.{name}(torch.tensor({first}), torch.tensor({second}))
        {printed}
    """
