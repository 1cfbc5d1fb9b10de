"""Short-time Fourier transforms: stft and istft."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._core.arrays import is_meta, raw_leaf
from ..._ops import fourier as f
from ..._ops import resizing, strided
from ..._ops import shape as s
from ..._warnings import warn, warn_once
from ...overrides import overridable
from .. import _base
from .._aliasing.views import view_op
from .._recording.operands import not_a_tensor
from .._recording.record import record
from .complex_views import view_as_complex, view_as_real
from .creation import ones
from .rearrange import constant_pad_nd
from .shape import basic_view, expand, reshape, squeeze, transpose, unsqueeze

_PADS = {"reflect": "ReflectionPad1DBackward0", "replicate": "ReplicationPad1DBackward0", "circular": "CatBackward0"}


def _type_text(tensor: Any) -> str:
    name = _base.dtype_of(tensor)._scalar_name
    has_class = not name.startswith("Complex") and name not in ("Bool", "BFloat16")
    return f"torch.{name}Tensor" if has_class else f"CPU{name}Type"


def _call_text(name: str, tensor: Any, arguments: dict[str, Any]) -> str:
    """Write a call as torch does in its errors."""
    parts = [f"{_type_text(tensor)}{_errors.sizes(tensor._array.shape)}"]
    for key, value in arguments.items():
        if isinstance(value, _base.Tensor):
            value = f"{_type_text(value)}{{{_errors.sizes(value._array.shape)}}}"
        parts.append(f"{key}={int(value) if isinstance(value, bool) else value}")
    return f"{name}({', '.join(parts)})"


def _padded(tensor: Any, by: int, mode: str) -> Any:
    """Pad both ends of the last dimension; a negative number crops."""
    shape = tuple(tensor._array.shape)
    wide = reshape(tensor, (1,) * (3 - len(shape)) + shape) if len(shape) < 3 else tensor
    size = wide._array.shape[-1]
    if mode == "constant":
        wide = constant_pad_nd(wide, (by, by))
    elif mode not in _PADS:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    elif by < 0:
        wide = basic_view(wide, (slice(None), slice(None), slice(-by, size + by)), "SliceBackward0", {"dim": 2})
    else:
        if mode == "circular" and by > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode != "circular" and not wide._array.size:
            raise RuntimeError(
                "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                f"input, but got: {_errors.sizes(wide._array.shape)}"
            )
        if mode == "reflect" and by >= size:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                f"({by}, {by}) at dimension 2 of input {_errors.sizes(wide._array.shape)}"
            )
        params = {"taps": (resizing.padding_taps(size, by, by, mode),)}
        wide = record(resizing.resample, (wide,), params, _PADS[mode], {"padding": (by, by)})
    result = wide._array.shape
    return reshape(wide, tuple(result[len(result) - len(shape) :])) if len(shape) < 3 else wide


def _full_window(window: Any, win_length: int, n_fft: int, like: Any) -> Any:
    """Center a window in a transform's length; None where a rectangle would change nothing."""
    if window is None:
        if win_length == n_fft:
            return None
        window = ones(win_length, dtype=_base.dtype_of(like))
    before = (n_fft - win_length) // 2
    return window if win_length == n_fft else constant_pad_nd(window, (before, n_fft - win_length - before))


@overridable(raised="cpu")
def stft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    """Transform overlapping pieces of a signal."""
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    tensor = _padded(input, n_fft // 2, pad_mode) if center else input
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. "
            "Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral "
            "leakage.To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, "
            "device=<device>)`."
        )
    complex_ = tensor._array.dtype.kind == "c" or (window is not None and window._array.dtype.kind == "c")
    asked = return_complex
    if return_complex is None:
        if not complex_:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    elif not return_complex:
        warn_once(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex "
            "tensors for all inputs, and return_complex=False will raise an error.\nNote: you can still call "
            "torch.view_as_real on the complex output to recover the old return format."
        )
    shown = {"n_fft": n_fft, "hop_length": hop, "win_length": length, "window": window, "normalized": normalized}
    shown |= {"onesided": onesided, "return_complex": asked, "align_to_window": align_to_window}
    _check_stft(tensor, window, n_fft, hop, length, shown)
    if onesided and complex_:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    single = tensor._array.ndim == 1
    if single:
        tensor = unsqueeze(tensor, 0)
    if align_to_window:
        by = (n_fft - length) // 2
        tensor = constant_pad_nd(tensor, (by, by))
    pieces = view_op(tensor, strided.unfold, {"axis": 1, "size": n_fft, "step": hop}, "AsStridedBackward0")
    full = _full_window(window, length, n_fft, tensor)
    if full is not None:
        pieces = pieces * full
    out = _spectrum(pieces, complex_, normalized, not complex_ if onesided is None else onesided)
    out = record(s.permute_dims, (out,), {"axes": (0, 2, 1)}, "TransposeBackward1", {"dim0": 1, "dim1": 2})
    if single:
        out = record(s.squeeze, (out,), {"axis": (0,)}, "SqueezeBackward4", {"dim": 0})
    return out if return_complex else view_as_real(out)


def _check_stft(tensor: Any, window: Any, n_fft: int, hop: int, length: int, shown: dict[str, Any]) -> None:
    def refuse(words: str) -> None:
        raise RuntimeError(f"{_call_text('stft', tensor, shown)} : expected {words}")

    shape = tensor._array.shape
    if tensor._array.dtype.kind in "iub":
        refuse("a tensor of floating point or complex values")
    if not 1 <= len(shape) <= 2:
        refuse("a 1D or 2D tensor")
    if not 0 < n_fft <= shape[-1]:
        refuse(f"0 < n_fft < {shape[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        refuse(f"hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        refuse(f"0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and tuple(window._array.shape) != (length,):
        refuse(
            f"a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{_errors.sizes(window._array.shape)}"
        )


def _spectrum(pieces: Any, complex_: bool, normalized: bool, onesided: bool) -> Any:
    dtype = _base.dtype_of(pieces)
    if dtype.itemsize == 2:
        raise RuntimeError(f"MKL FFT doesn't support tensors of type: {dtype._scalar_name}")
    params: dict[str, Any] = {"axes": (2,), "norm": int(normalized)}
    if complex_:
        return record(f.fft_c2c, (pieces,), {**params, "forward": True}, "FftC2CBackward0")
    return record(f.fft_r2c, (pieces,), {**params, "onesided": onesided}, "FftR2CBackward0")


@overridable
def istft(
    input: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Any:
    """Undo `stft` by adding up what the pieces say, and dividing by the sum of squared windows."""
    if not isinstance(input, _base.Tensor):
        raise TypeError(not_a_tensor("istft", 1, input, "input"))
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if window is None:
        warn_once(
            "A window was not provided. A rectangular window will be applied.Please provide the same window used by "
            "stft to make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
            "`window=torch.ones(n_fft, device=<device>)`."
        )
    if input._array.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    shown = {"n_fft": n_fft, "hop_length": hop, "win_length": width, "window": window, "center": center}
    shown |= {"normalized": normalized, "onesided": onesided, "length": length, "return_complex": return_complex}
    call = _call_text("istft", input, shown)
    ndim = input._array.ndim
    if ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim - 1}, {ndim}], but got -3)")
    count, sizes = input._array.shape[-1], input._array.shape[-2]
    onesided = sizes != n_fft if onesided is None else onesided
    _check_istft(call, input, window, n_fft, hop, width, onesided)
    pairs = view_as_real(input)
    if ndim == 2:
        pairs = unsqueeze(pairs, 0)
    full = _full_window(window, width, n_fft, pairs)
    if full is None:
        full = ones(n_fft, dtype=_base.dtype_of(pairs))
    spectra = view_as_complex(transpose(pairs, 1, 2))
    pieces = _pieces(spectra, full, n_fft, normalized, onesided, return_complex)
    expected = n_fft + hop * (count - 1)
    added = {"axis": 1, "size": n_fft, "step": hop}
    batch = pieces._array.shape[0]
    total = record(
        strided.unfold_add,
        (pieces * reshape(full, (1, 1, n_fft)),),
        {"shape": (batch, expected), **added},
        "UnfoldBackwardBackward0",
    )
    squares = expand(full.pow(2), (1, count, n_fft))
    envelope = record(strided.unfold_add, (squares,), {"shape": (1, expected), **added}, "UnfoldBackwardBackward0")
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else -(n_fft // 2) if center and n_fft > 1 else expected
    part = (slice(None), slice(start, end))
    at = {"dim": 1, "start": start, "end": end, "step": 1}
    total, envelope = [basic_view(one, part, "SliceBackward0", at) for one in (total, envelope)]
    heights = abs(raw_leaf(envelope._array))  # looked at outside of transforms, as torch does
    if not heights.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    if not is_meta(heights) and heights.min() < 1e-11:
        raise RuntimeError(f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]")
    result = total / envelope
    if ndim == 2:
        result = squeeze(result, 0)
    if end > expected:
        warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
            "Please check your center and hop_length settings."
        )
        result = constant_pad_nd(result, (0, end - expected))
    return result


def _check_istft(call: str, tensor: Any, window: Any, n_fft: int, hop: int, width: int, onesided: bool) -> None:
    def refuse(words: str) -> None:
        raise RuntimeError(f"{call} : {words}")

    shape = tensor._array.shape
    if not tensor._array.size:
        refuse("input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        refuse(f"expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    wanted, words = (n_fft // 2 + 1, "n_fft / 2 + 1") if onesided else (n_fft, "n_fft")
    if shape[-2] != wanted:
        refuse(
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {words} when "
            f"onesided={onesided}, but got {shape[-2]}"
        )
    if not 0 < hop <= width:
        refuse("expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        refuse("expected 0 < win_length <= n_fft")
    if window is not None and tuple(window._array.shape) != (width,):
        refuse("Invalid window shape. window has to be 1D and length of `win_length`")


def _pieces(spectra: Any, window: Any, n_fft: int, normalized: bool, onesided: bool, return_complex: bool) -> Any:
    params: dict[str, Any] = {"axes": (2,), "norm": 1 if normalized else 2}
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        return record(f.fft_c2c, (spectra,), {**params, "forward": False}, "FftC2CBackward0")
    if window._array.dtype.kind == "c":
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if not onesided:
        half = n_fft // 2 + 1
        at = {"dim": 2, "start": 0, "end": half, "step": 1}
        spectra = basic_view(spectra, (slice(None), slice(None), slice(0, half)), "SliceBackward0", at)
    return record(f.fft_c2r, (spectra,), {**params, "size": n_fft}, "FftC2RBackward0")
