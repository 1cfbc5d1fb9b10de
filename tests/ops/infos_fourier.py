"""Fourier transforms, windows, and complex numbers as pairs."""

from __future__ import annotations

from tests.ops.opinfo import POSITIVE, F, K, Op, S

OPS: list[Op] = []

ONE = (
    S(F(4)),
    S(F(5)),
    S(F(2, 4)),
    S(F(2, 4), dim=0),
    S(F(2, 4, layout="transposed")),
    S(F(4, layout="strided")),
    S(F(2, 4), n=3),
    S(F(2, 4), n=6),
    S(F(4), n=1),
    S(F(3), norm="ortho"),
    S(F(4), norm="forward"),
    S(F(2, 3, 2), n=4, dim=1, norm="backward"),
)
TWO = (
    S(F(3, 4)),
    S(F(2, 3, 4)),
    S(F(2, 3, 4), dim=(0, 1)),
    S(F(2, 3, 4), dim=(2, 0)),
    S(F(3, 4), s=(2, 6)),
    S(F(3, 4, layout="transposed"), norm="ortho"),
    S(F(3, 4), s=(4, 3), norm="forward"),
)
SEVERAL = (
    S(F(4)),
    S(F(3, 4)),
    S(F(2, 3, 2)),
    S(F(2, 3, 4), s=(3,)),
    S(F(2, 3, 4), dim=(1,)),
    S(F(2, 3, 4), s=(3, 3, 3), norm="ortho"),
    S(F(3, 4), s=(-1, 5)),
)


def transform(name, samples, **options):
    """Add a transform; complex inputs only where torch takes them."""
    OPS.append(Op(f"fft.{name}", lambda torch, x, **kw: getattr(torch.fft, name)(x, **kw), samples, **options))


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _complex = _name not in ("rfft", "ihfft")
    transform(_name, ONE, complex=_complex)
    transform(f"{_name}2", TWO, complex=_complex)
    transform(f"{_name}n", SEVERAL, complex=_complex)
SHIFTS = (S(F(4)), S(F(2, 3)), S(F(2, 3), dim=0), S(F(2, 3, 4), dim=(0, 2)))
for _name in ("fftshift", "ifftshift"):
    transform(_name, SHIFTS, complex=True)

# ---- pieces of a signal ----
WINDOW = K([0.5, 1.0, 0.75, 0.25], batched=False)


def stft(torch, x, window, **kw):
    return torch.stft(x, 4, window=window, return_complex=True, **kw)


OPS.append(
    Op(
        "stft",
        stft,
        (
            S(F(8), F(4)),
            S(F(2, 8), F(4), hop_length=3),
            S(F(2, 8), F(4), center=False),
            S(F(9), F(4), pad_mode="replicate", normalized=True),
            S(F(9), F(4), onesided=False),
            S(F(9), F(3), win_length=3, pad_mode="constant"),
        ),
        oracle_dtypes=("float32", "float64"),
    )
)
OPS.append(
    Op(
        "stft_complex",
        lambda torch, x, window, **kw: torch.stft(torch.complex(x, x * x), 4, window=window, **kw),
        (S(F(8), F(4)), S(F(2, 8), F(4), normalized=True)),
        oracle_dtypes=("float32", "float64"),
    )
)
OPS.append(
    Op(
        "istft",
        lambda torch, x, y, window, **kw: torch.istft(torch.complex(x, y), 4, window=window, **kw),
        (
            S(F(3, 6), F(3, 6), F(4)),
            S(F(2, 3, 6), F(2, 3, 6), F(4), hop_length=2),
            S(F(3, 6), F(3, 6), F(4), center=False, length=7),
            S(F(4, 6), F(4, 6), F(4), onesided=False, return_complex=True),
            S(F(4, 6), F(4, 6), F(4), onesided=False, normalized=True),
        ),
        domain=POSITIVE,
        oracle_dtypes=("float32", "float64"),
    )
)

# ---- complex numbers as pairs ----
OPS.append(
    Op(
        "view_as_complex",
        lambda torch, x: torch.view_as_complex(x) * (2 + 1j),
        (S(F(2)), S(F(3, 2)), S(F(2, 3, 2)), S(F(0, 2))),
        oracle_dtypes=("float32", "float64"),
    )
)
OPS.append(
    Op(
        "view_as_real",
        lambda torch, x, y: torch.view_as_real(torch.complex(x, y)) ** 2,
        (S(F(), F()), S(F(3), F(3)), S(F(2, 3), F(2, 3)), S(F(0), F(0))),
        oracle_dtypes=("float32", "float64"),
    )
)
OPS.append(
    Op(
        "view_as_complex_written",
        lambda torch, x, y: _written(torch, x, y),
        (S(F(3, 2), F(3)),),
        oracle_dtypes=("float32", "float64"),
    )
)


def _written(torch, x, y):
    pairs = x * 1
    torch.view_as_complex(pairs).mul_(torch.complex(y, y * y))
    return pairs


OPS.append(
    Op(
        "real_part_written",
        lambda torch, x, y: _real_part_written(torch, x, y),
        (S(F(3), F(3)),),
        oracle_dtypes=("float32", "float64"),
    )
)


def _real_part_written(torch, x, y):
    number = torch.complex(x, y) * (1 + 2j)
    number.real.mul_(y)
    return torch.view_as_real(number)
