"""Contents of files decoded by what their names end in."""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from .....tensor import functions as _functions


def basichandlers(extension: str, data: Any) -> Any:
    """Decode text, JSON, pickles and tensors; None for all else."""
    if extension in ("txt", "text", "transcript"):
        return data.decode("utf-8")
    if extension in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    return _loaded(data) if extension == "pt" else None


def _loaded(data: bytes) -> Any:
    from .....serialization import load

    return load(io.BytesIO(data))


_SPECS = {
    f"{kind}{dtype}{mode}": (kind or "numpy", "float" if dtype != "8" else "uint8", mode.lower() or "rgb")
    for kind in ("", "torch", "pil")
    for dtype in ("8", "")
    for mode in ("l", "rgb", "rgba")
}
_SPECS |= {"torch": ("torch", "float", "rgb"), "pil": ("pil", "float", "rgb")}


class ImageHandler:
    """Decodes images by Pillow: into an image, an array or a tensor."""

    def __init__(self, imagespec: str) -> None:
        if imagespec.lower() not in _SPECS:
            raise AssertionError(f"unknown image specification: {imagespec.lower()}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in ("jpg", "jpeg", "png", "ppm", "pgm", "pbm", "pnm"):
            return None
        from PIL import Image

        kind, dtype, mode = _SPECS[self.imagespec]
        image = Image.open(io.BytesIO(data)).convert(mode.upper())
        if kind == "pil":
            return image
        values = np.asarray(image)
        values = values if dtype == "uint8" else values.astype("f") / 255.0
        if kind == "numpy":
            return values
        return _functions()["from_numpy"](np.array(values.transpose(2, 0, 1)) if values.ndim == 3 else np.array(values))


def imagehandler(imagespec: str) -> ImageHandler:
    """Return what decodes images."""
    return ImageHandler(imagespec)


def videohandler(extension: str, data: bytes) -> Any:
    """Refuse videos: they need torchvision's compiled reader."""
    if extension not in ("mp4", "ogv", "mjpeg", "avi", "mov", "h264", "mpg", "webm", "wmv"):
        return None
    raise NotImplementedError("videohandler needs the reader of torchvision, which is compiled for torch")


def audiohandler(extension: str, data: bytes) -> Any:
    """Refuse sound: it needs torchaudio's compiled reader."""
    if extension not in ("flac", "mp3", "sox", "wav", "m4a", "ogg", "wma"):
        return None
    raise NotImplementedError("audiohandler needs the reader of torchaudio, which is compiled for torch")


class MatHandler:
    """Decodes MATLAB's files by SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        from scipy.io import loadmat

        return loadmat(io.BytesIO(data), **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """Return what decodes MATLAB's files."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """Return what a name ends in, without the dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """Make a handler of a function, for names that end in one of some words."""
    wanted = [one.lower().split(".") for one in extensions.split()]

    def handle(key: str, data: Any) -> Any:
        parts = key.lower().split(".")
        return next((f(data) for one in wanted if parts[-len(one) :] == one), None)

    return handle


class Decoder:
    """Asks handlers one after another; the first that answers has decoded."""

    def __init__(
        self, *handler: Callable[[str, Any], Any], key_fn: Callable[[str], str] = extension_extract_fn
    ) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[[str, Any], Any]) -> None:
        """Ask further functions, before the ones there are."""
        self.handlers = [*handler, *self.handlers]

    def decode1(self, key: str, data: Any) -> Any:
        """Decode the contents of one file."""
        if not data:
            return data
        for handler in self.handlers:
            found = handler(key, data)
            if found is not None:
                return found
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """Decode files by their names."""
        pairs = data.items() if isinstance(data, dict) else [data]
        return {key: self.decode1(self.key_fn(key), value) for key, value in pairs}

    __call__ = decode
