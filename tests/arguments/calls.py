"""Bad calls of public functions, as programs of one line: made from signatures and a seed, the same for both libraries."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from retrograd import _signatures

SPACES = {"": "", "linalg": "linalg_", "fft": "fft_", "special": "special_", "nn.functional": "nn.functional."}
# What changes the process, reads files, waits, or has nothing to do with arguments of operations.
LEFT_OUT = set(
    """save load set_default_dtype set_default_device set_default_tensor_type set_printoptions set_num_threads compile vmap
    set_num_interop_threads manual_seed seed set_rng_state use_deterministic_algorithms set_deterministic_debug_mode from_file
    set_float32_matmul_precision set_warn_always set_anomaly_enabled set_flush_denormal set_autocast_enabled to_dlpack
    from_dlpack frombuffer get_device_module cuda ipu xpu mtia hpu share_memory_ storage untyped_storage backward
    register_hook register_post_accumulate_grad_hook map_ map2_ apply_ pin_memory is_pinned data_ptr new typename is_storage
    eig lstsq matrix_rank solve symeig resize resize_as sparse_coo_tensor set_ record_stream""".split()  # noqa: SIM905 - names read better as text
)
BAD = """'x' None 1.5 True -1 7 2**40 -2**63 float('nan') float('inf') [s,s] () (1,'x') np.ones(3) np.int64(1) i b c e z k object()
{} torch.float32 [[1]] slice(1) -9 0 [] (0,0) 'mean' 1j""".split()  # noqa: SIM905 - names read better as text
# By the name of a parameter, and else by its kind: an argument that most functions take.
BY_NAME = {
    "index": "j", "indices": "j", "mask": "(s>0)", "condition": "(s>0)", "batch1": "q", "batch2": "q", "vec": "v", "vec1": "v",
    "vec2": "v", "dim1": "1", "dim2": "1", "axis1": "1", "source": "s", "repeats": "2", "end": "4", "equation": "'ij,jk->ik'",
    "kernel_size": "2", "output_size": "2", "target": "s", "p": "0.5", "size": "(3, 3)", "dims": "(0,)", "sections": "3",
    "split_size": "1", "split_sizes": "(1, 2)", "split_size_or_sections": "1", "chunks": "3", "tensors": "[s, s]", "shape": "(3, 3)",
    "destination": "1", "num_classes": "3", "n_fft": "2", "steps": "3", "dtype": "torch.float64", "fill_value": "1", "diagonal": "0",
    "weight": "s", "normalized_shape": "(3,)", "groups": "1", "num_groups": "1", "bias": "None", "q": "0.5", "bins": "2",
}  # fmt: skip
BY_KIND = {
    "Tensor": "s", "Tensors": "[s, s]", "Tensors_or_Nones": "(j,)", "Number": "2", "int": "0", "ints": "(1,)", "float": "0.5",
    "floats": "(1.0,)", "bool": "False", "str": "'x'", "dtype": "torch.float64", "Numbers": "[1]", "complex": "1j",
}  # fmt: skip


def scope(library: Any) -> dict[str, Any]:
    """Return what the programs name."""
    torch = library
    s = torch.arange(9.0).reshape(3, 3) / 7 + 0.1 + 2 * torch.eye(3)
    return {
        "torch": torch, "np": np, "s": s, "q": torch.ones(3, 3, 3), "v": torch.ones(3), "j": torch.zeros(3, 3, dtype=torch.int64),
        "i": torch.tensor([0, 1]), "b": torch.tensor([True, False]), "c": torch.ones(3, 3, dtype=torch.complex64),
        "e": torch.ones(0), "z": torch.tensor(1.5), "k": torch.tensor(1),
    }  # fmt: skip


def functions(ours: Any, theirs: Any) -> Iterator[tuple[str, str, str]]:
    """Yield how a program writes each public function of both libraries, its key among signatures, and its name."""
    for space, prefix in (*SPACES.items(), ("Tensor", "Tensor.")):
        for name in sorted(dir(_part(theirs, space))):
            known = _signatures.signature(prefix + name) or (space == "nn.functional" and _signatures.signature(name))
            if known and name not in LEFT_OUT and hasattr(_part(ours, space), name):
                key = prefix + name if _signatures.signature(prefix + name) else name
                yield ("s.clone()" if space == "Tensor" else f"torch.{space}".rstrip(".")) + f".{name}", key, name


def _part(library: Any, space: str) -> Any:
    for name in space.split(".") if space else ():
        library = getattr(library, name)
    return library


class Written:
    """One form of a function, and how calls of it are written."""

    def __init__(self, written: str, form: Any) -> None:
        self.written = written
        self.parameters = [one for one in form.parameters if one.kind != "rest" and one.name not in ("self", "from")]
        self.given = {
            one.name: BY_NAME.get(one.name) or BY_KIND.get(one.kind, "None")
            for one in self.parameters
            if one.default is None
        }
        self.positional = [one.name for one in self.parameters if one.name in self.given and not one.keyword_only]

    def call(self, changed: dict[str, str], keywords: tuple[str, ...] = (), words: dict[str, str] | None = None) -> str:
        """Write a call with some arguments changed, some given by name, and some by other names."""
        values = {**self.given, **changed}
        by_place = [name for name in self.positional if name not in keywords]
        named = [f"{(words or {}).get(name, name)}={value}" for name, value in values.items() if name not in by_place]
        return f"{self.written}({', '.join([*(values[name] for name in by_place), *named])})"


def forms(written: str, key: str) -> list[Written]:
    """Return the forms of a function."""
    known = _signatures.signature(key)
    assert known is not None
    return [Written(written, form) for form in known.forms or (_signatures.Form((), False),)]


def by_name(written: str, key: str) -> list[str]:
    """Return calls that give every argument by its name, and by NumPy's."""
    found = []
    for form in forms(written, key):
        names = tuple(form.positional)
        found.append(form.call({}, names))
        for word, name in (("x", "input"), ("a", "input"), ("x1", "input"), ("x2", "other"), ("axis", "dim")):
            if name in names:
                found.append(form.call({}, names, {name: word}))
    return found


def numbers_as_tensors(written: str, key: str) -> list[str]:
    """Return calls that give tensors of no dimensions, and NumPy's scalars, for numbers."""
    kinds = {
        "int": ("k", "np.int64(1)"),
        "float": ("z", "k", "np.float32(1.5)"),
        "Number": ("z", "k", "np.float32(1.5)"),
    }
    kinds |= {"ints": ("k", "(k,)", "[np.int64(1)]")}
    return [
        form.call({one.name: value}, () if one.name in form.positional else (one.name,))
        for form in forms(written, key)
        for one in form.parameters
        for value in kinds.get(one.kind, ())
    ]


def calls(written: str, key: str, count: int, seed: int = 0) -> list[str]:
    """Return bad calls of a function, `count` of them at most, in an order that the seed and the name decide."""
    drawn = random.Random(zlib.crc32(f"{seed} {written}".encode()))
    found = [f"{written}()", f"{written}(s, s, s, s, s, s, s, s, s)", f"{written}(foo=1)"]
    for form in forms(written, key):
        last = [form.given[name] for name in form.positional[-1:]]
        found += [form.call({}), form.call({"foo": "1"}), form.call({}, tuple(form.positional))]
        found += [form.call({}).replace(value, "", 1).replace("(, ", "(").replace(", , ", ", ") for value in last]
        for one in form.parameters:
            by_keyword = () if one.name in form.positional else (one.name,)
            found += [form.call({one.name: bad}, by_keyword) for bad in BAD]
    drawn.shuffle(found)
    return list(dict.fromkeys(found))[:count]
