"""Convolutions, their transposes, and patches."""

from __future__ import annotations

from importlib import import_module

from tests.ops.opinfo import F, Op, S

T = "transposed"
WIDE = ("float64", "complex128", "float32", "complex64")


def conv(name, samples, **options):
    """Return an operation that has its torch name in nn.functional."""
    call = lambda torch, *xs, **kw: getattr(torch.nn.functional, name)(*xs, **kw)  # noqa: E731
    options.setdefault("oracle_dtypes", WIDE)  # torch rounds half precision after every step
    return Op(options.pop("label", name), call, tuple(samples), complex=True, same_graph=False, **options)


def gradient_of_input(torch, w, g, *, size, **options):
    """Call torch.nn.grad's function for the input of conv2d."""
    return import_module(f"{torch.__name__}.nn.grad").conv2d_input(size, w, g, **options)


def gradient_of_weight(torch, x, g, *, size, **options):
    """Call torch.nn.grad's function for the weight of conv2d."""
    return import_module(f"{torch.__name__}.nn.grad").conv2d_weight(x, size, g, **options)


OPS = [
    Op(
        "conv2d_input",
        gradient_of_input,
        (
            S(F(3, 2, 2, 2), F(2, 3, 2, 2), size=(2, 2, 4, 4), stride=2),
            S(F(4, 1, 2, 2), F(1, 4, 4, 4), size=(1, 2, 3, 3), padding=1, groups=2),
        ),
        complex=True,
        same_graph=False,
        oracle_dtypes=("float64", "float32"),
    ),
    Op(
        "conv2d_weight",
        gradient_of_weight,
        (
            S(F(2, 2, 4, 4), F(2, 3, 2, 2), size=(3, 2, 2, 2), stride=2),
            S(F(1, 2, 3, 3), F(1, 4, 4, 4), size=(4, 1, 2, 2), padding=1, groups=2),
        ),
        complex=True,
        same_graph=False,
        oracle_dtypes=("float64", "float32"),
    ),
    conv(
        "conv1d",
        (
            S(F(2, 2, 5), F(3, 2, 3)),
            S(F(2, 2, 5), F(3, 2, 3), F(3), padding=1),
            S(F(2, 5), F(3, 2, 2), F(3), stride=2),
            S(F(2, 4, 5), F(4, 2, 2), F(4), groups=2, dilation=2),
            S(F(1, 2, 4), F(2, 2, 2), padding="same"),
            S(F(1, 2, 4, layout=T), F(2, 2, 3, layout=T), padding="valid"),
            S(F(0, 2, 4), F(2, 2, 3)),
        ),
    ),
    conv(
        "conv2d",
        (
            S(F(2, 2, 4, 4), F(3, 2, 3, 3), F(3)),
            S(F(2, 2, 4, 5), F(3, 2, 3, 2), F(3), padding=(1, 2), stride=(2, 1)),
            S(F(1, 2, 5, 5), F(2, 2, 2, 3), dilation=(1, 2)),
            S(F(2, 4, 3, 3), F(4, 1, 2, 2), F(4), groups=4),  # each channel alone
            S(F(2, 4, 3, 3), F(2, 2, 2, 2), groups=2, padding=1),
            S(F(2, 3, 3, 2), F(2, 3, 1, 1), F(2)),
            S(F(2, 4, 4), F(3, 2, 3, 3), F(3), padding="same"),
            S(F(1, 2, 4, 4), F(3, 2, 2, 2), F(3), padding="same"),
            S(F(1, 1, 2, 2), F(1, 1, 2, 2), padding=3),
            S(F(4, 2, 3, 3), F(2, 2, 3, 3)),  # one place each
            S(F(1, 2, 3, 4, layout=T), F(2, 2, 2, 2, layout=T)),
        ),
    ),
    conv(
        "conv3d",
        (S(F(1, 2, 3, 3, 3), F(2, 2, 2, 2, 2), F(2)), S(F(2, 2, 2, 3), F(2, 1, 1, 2, 2), groups=2, padding=(0, 1, 1))),
    ),
    conv(
        "conv_transpose1d",
        (
            S(F(2, 2, 4), F(2, 3, 3), F(3)),
            S(F(2, 4), F(2, 3, 2), F(3), stride=2, output_padding=1),
            S(F(2, 4, 3), F(4, 2, 2), groups=2, padding=1, dilation=2),
            S(F(1, 2, 3), F(2, 2, 2), stride=1, dilation=3, output_padding=2),
        ),
    ),
    conv(
        "conv_transpose2d",
        (
            S(F(2, 2, 3, 3), F(2, 3, 2, 2), F(3)),
            S(F(1, 2, 2, 3), F(2, 2, 3, 2), F(2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
            S(F(1, 4, 2, 2), F(4, 1, 2, 2), F(2), groups=2),
            S(F(2, 3, 2), F(2, 2, 1, 1)),
            S(F(0, 2, 3, 3), F(2, 3, 2, 2)),
        ),
    ),
    conv("conv_transpose3d", (S(F(1, 2, 2, 2, 2), F(2, 2, 2, 2, 2), F(2), stride=2),)),
    conv(
        "conv_tbc",
        (S(F(4, 2, 3), F(2, 3, 2), F(2)), S(F(4, 2, 3), F(3, 3, 2), F(2), pad=1)),
        oracle_dtypes=("float64",),
    ),
    conv(
        "unfold",
        (
            S(F(2, 2, 4, 4), kernel_size=2),
            S(F(2, 4, 4), kernel_size=(3, 2), padding=1),
            S(F(2, 1, 5, 5, layout=T), kernel_size=2, dilation=2, stride=2),
            S(F(1, 2, 3, 3), kernel_size=1),
        ),
    ),
    conv(
        "fold",
        (
            S(F(2, 8, 9), output_size=(4, 4), kernel_size=2),
            S(F(6, 6), output_size=(3, 3), kernel_size=(3, 2), padding=(1, 0)),
            S(F(1, 4, 4), output_size=5, kernel_size=2, dilation=2, stride=2),
            S(F(1, 2, 9), output_size=3, kernel_size=1),
        ),
    ),
]
