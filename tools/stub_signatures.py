"""Write a function of the package as a stub does: its parameters from torch's signatures, its results from the table here."""

from __future__ import annotations

import inspect
import re
from enum import EnumMeta
from typing import Any, NamedTuple

from retrograd import return_types
from retrograd._signatures import NUMBERS_AS_TENSORS, Form, Parameter
from retrograd._signatures import signature as torch_signature

# The kinds of the table of signatures as types. The module in which a stub is written imports what they name.
TYPES = {
    "Tensor": "Tensor",
    "Tensors": "Sequence[Tensor]",
    "Tensors_or_Nones": "Sequence[Tensor | None]",
    "Number": "_Number",
    "Numbers": "Sequence[_Number]",
    "ints": "Sequence[int]",
    "floats": "Sequence[float]",
    "dtype": "_dtype",
    "layout": "_layout",
    "device": "_DeviceLike",
    "memory_format": "_memory_format",
    "Generator": "_Generator",
    "int": "int",
    "float": "float",
    "complex": "complex",
    "bool": "bool",
    "str": "str",
}
ONE_OF_MANY = {"ints": "int | Sequence[int]", "floats": "float | Sequence[float]"}
# What torch's signatures leave open, by the parameter's name.
SIZES = "int | Sequence[int]"
NAMED_TYPES = {
    **dict.fromkeys(("input", "target", "x1", "x2"), "Tensor"),
    **dict.fromkeys(("kernel_size", "padding", "dilation"), SIZES),
    **dict.fromkeys(("dtype",), "_dtype | None"),
    **dict.fromkeys(("stride", "output_padding", "dim"), f"{SIZES} | None"),
    **dict.fromkeys(("output_size",), "int | None | Sequence[int | None]"),
    **dict.fromkeys(("keepdim", "create_graph"), "bool"),
    "seed": "int",
    "gradient": "Tensor | None",
    "retain_graph": "bool | None",
    "inputs": "Tensor | Sequence[Tensor] | None",
    "hook": "Callable[..., object]",
    "self": "Any",
}
SECTIONS = """chunk unsafe_chunk split unsafe_split split_with_sizes unsafe_split_with_sizes tensor_split hsplit vsplit dsplit
unbind meshgrid broadcast_tensors gradient unbind_copy split_copy split_with_sizes_copy unravel_index"""
PAIRS = """std_mean var_mean native_dropout gru rnn_relu rnn_tanh lstm_cell adaptive_max_pool1d max_pool1d_with_indices
max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
adaptive_max_pool3d_with_indices fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices"""
TRIPLES = "lstm native_batch_norm native_group_norm native_layer_norm svd_lowrank pca_lowrank"
TRUTHS = """allclose equal is_tensor is_storage is_floating_point is_complex is_conj is_neg is_nonzero is_same_size is_signed
is_inference is_pinned is_set_to is_shared can_cast is_autocast_enabled"""
COUNTS = "numel nelement dim ndimension element_size storage_offset get_device data_ptr seed initial_seed"
ANYTHING = (
    "unique unique_consecutive lu load vmap compile eig symeig lstsq solve storage untyped_storage tolist as_subclass"
)
# What a function returns that is not one tensor, and is no named result.
RETURNS = {
    **dict.fromkeys(SECTIONS.split(), "tuple[Tensor, ...]"),
    **dict.fromkeys(PAIRS.split(), "tuple[Tensor, Tensor]"),
    **dict.fromkeys(TRIPLES.split(), "tuple[Tensor, Tensor, Tensor]"),
    **dict.fromkeys(TRUTHS.split(), "bool"),
    **dict.fromkeys(COUNTS.split(), "int"),
    **dict.fromkeys(["result_type", "promote_types", "get_autocast_dtype"], "_dtype"),
    **dict.fromkeys(ANYTHING.split(), "Any"),
    "embedding_bag": "tuple[Tensor, Tensor, Tensor, Tensor]",
    "nn.functional.embedding_bag": "Tensor",
    "nn.functional.adaptive_max_pool1d": "Tensor",
    "nn.functional.multi_head_attention_forward": "tuple[Tensor, Tensor | None]",
    "atleast_1d": "Any",  # one tensor or several, as given
    "atleast_2d": "Any",
    "atleast_3d": "Any",
    "broadcast_shapes": "_Size",
    "dim_order": "tuple[int, ...]",
    "item": "int | float | bool",
    "from_numpy": "Tensor",
    "native_dropout_backward": "Tensor",
    "numpy": "_ndarray",
    "typename": "str",
    "manual_seed": "_Generator",
    "save": "None",
    "backward": "None",
}  # fmt: skip
FORMS = {  # what the signatures do not tell apart
    "Tensor.type": [
        (("self", "dtype: None = ...", "non_blocking: bool = ..."), "str"),
        (("self", "dtype: _dtype | str | type[Any]", "non_blocking: bool = ..."), "Tensor"),
    ],
}
NAMED_WITH_DIM = {"max", "min", "median", "nanmedian"}  # one tensor without `dim`, a named result with it
LITERAL = re.compile(r"""True|False|None|-?\d+(\.\d+)?(e-?\d+)?|'\w*'|"\w*\"""")
KEYWORDS = {"from", "lambda", "class", "async"}


class Overload(NamedTuple):
    """One form of a function: its parameters as text, and what it returns."""

    parameters: tuple[str, ...]
    returned: str


def returned(key: str, form: Form | None) -> str | None:
    """Return what a form of a function returns, or None where no table says it."""
    name = key.removeprefix("Tensor.")
    given = {one.name for one in form.parameters} if form else set()
    result = name.replace(".", "_")
    if result in return_types._FIELDS and (result not in NAMED_WITH_DIM or "dim" in given):
        return f"_results.{result}"
    if name == "nonzero" and "as_tuple" in given:
        return "tuple[Tensor, ...]"
    if name == "where" and form is not None and len(form.parameters) == 1:
        return "tuple[Tensor, ...]"
    return RETURNS.get(name) or RETURNS.get(name.rpartition(".")[2])


def parameter_type(name: str, one: Parameter, *, optional: bool) -> str:
    """Return the type of one parameter of torch's signature of a function."""
    if one.kind == "object" or (one.kind == "int" and one.name == "dtype"):
        kind = NAMED_TYPES.get(one.name, "Any")
    else:
        kind = TYPES.get(one.kind, "Any")
        if one.size and one.kind in ONE_OF_MANY:
            kind = ONE_OF_MANY[one.kind]
        if one.kind == "Tensor" and one.name == "other" and name in NUMBERS_AS_TENSORS:
            kind = "Tensor | _Number"
    none = kind != "Any" and "None" not in kind.split(" | ") and (optional or (one.takes_none and one.kind != "object"))
    return f"{kind} | None" if none else kind


def form_parameters(name: str, form: Form, *, method: bool, spread: bool) -> tuple[str, ...]:
    """Write the parameters of a form; `spread`: its sizes one by one."""
    parts = ["self"] if method else []
    keyword_only = False
    positional_only = any(one.name in KEYWORDS for one in form.parameters)
    rest = [one for one in form.parameters if one.kind == "rest"]
    for at, one in enumerate(form.parameters):
        if method and at == 0 and one.name == "self":
            continue
        if one.kind == "rest":
            parts.append(f"{one.name}: Any")
            keyword_only = keyword_only or not one.name.startswith("**")
            continue
        if spread and at == 0:
            parts.append(f"*{one.name}: int")
            keyword_only = True
            continue
        if one.keyword_only and not keyword_only:
            if not rest:
                parts.append("*")
            keyword_only = True
        default = "" if one.default is None else f" = {one.default if LITERAL.fullmatch(one.default) else '...'}"
        word = f"_{one.name}" if one.name in KEYWORDS else one.name
        parts.append(f"{word}: {parameter_type(name, one, optional=one.default == 'None')}{default}")
    if positional_only:
        named = [at for at, part in enumerate(parts) if part.startswith("*")]
        parts.insert(named[0] if named else len(parts), "/")
    return tuple(parts)


def merged(overloads: list[Overload]) -> list[Overload]:
    """Make one of those that differ in the types of one parameter, and leave out those that others take as well."""
    found: list[Overload] = []
    for each in overloads:
        for at, other in enumerate(found):
            if _covers(other, each):
                break
            if (together := _joined(other, each)) is not None:
                found[at] = together
                break
        else:
            found.append(each)
    return found


def _parsed(overload: Overload) -> list[tuple[str, set[str], bool]]:
    """Return name, types and whether there is a default for each parameter."""
    parsed = []
    for part in overload.parameters:
        name, _, rest = part.partition(": ")
        kinds, _, default = rest.partition(" = ")
        parsed.append((name, set(kinds.split(" | ")), bool(default)))
    return parsed


def _covers(one: Overload, other: Overload) -> bool:
    """Tell whether an overload takes all that another does, and returns the same."""
    mine = _parsed(one)
    theirs = _parsed(other)
    if one.returned != other.returned or [name for name, *_ in mine[: len(theirs)]] != [name for name, *_ in theirs]:
        return False
    fits = all(b <= a and (i or not j) for (_, a, i), (_, b, j) in zip(mine, theirs, strict=False))
    return fits and all(default or name == "*" for name, _, default in mine[len(theirs) :])


def _joined(one: Overload, other: Overload) -> Overload | None:
    mine, theirs = _parsed(one), _parsed(other)
    if one.returned != other.returned or [(a, c) for a, _, c in mine] != [(a, c) for a, _, c in theirs]:
        return None
    different = [at for at, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b]
    if len(different) != 1:
        return None
    parts = list(one.parameters)
    parts[different[0]] = _union(parts[different[0]], other.parameters[different[0]])
    return one._replace(parameters=tuple(parts))


def _union(one: str, other: str) -> str:
    name, _, rest = one.partition(": ")
    first, _, default = rest.partition(" = ")
    second = other.partition(": ")[2].partition(" = ")[0]
    kinds = list(dict.fromkeys([*first.split(" | "), *second.split(" | ")]))
    if "None" in kinds:
        kinds.remove("None")
        kinds.append("None")
    return f"{name}: {' | '.join(kinds)}" + (f" = {default}" if default else "")


def overloads(key: str, *, method: bool) -> list[Overload] | None:
    """Return the forms that torch's signatures give a function, or None if they do not have it."""
    if key in FORMS:
        return [Overload(parameters, result) for parameters, result in FORMS[key]]
    known = torch_signature(key)
    if known is None:
        return None
    name = key.rpartition(".")[2]
    if known.binder == "nothing":
        return [Overload(("self",), returned(key, None) or "Tensor")]
    made = []
    for form in (form for form in known.forms if not form.old):
        result = returned(key, form) or "Tensor"
        spreads = form.positional == 1 and form.parameters[0].kind == "ints" and not form.parameters[0].size
        made.append(Overload(form_parameters(name, form, method=method, spread=False), result))
        if spreads:
            made.append(Overload(form_parameters(name, form, method=method, spread=True), result))
    return merged(made)


SIMPLE = re.compile(r"(?:int|bool|float|str|None|Any|complex|tuple\[int, \.\.\.\]|Tensor|[ |])+")


def inspected(function: Any, *, method: bool) -> Overload | None:
    """Return the form that the source gives a function, or None for what has no signature."""
    plain = getattr(function, "__wrapped__", function)
    if isinstance(plain, EnumMeta):  # whose signature differs from one Python to the next
        return Overload(("value: Any",), "Any")
    try:
        found = inspect.signature(plain)
    except (TypeError, ValueError):
        return None
    parameters = list(found.parameters.values())[method:]
    parts = ["self"] if method else []
    keyword_only = False
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            parts.append(f"*{one.name}: Any")
            keyword_only = True
        elif one.kind is one.VAR_KEYWORD:
            parts.append(f"**{one.name}: Any")
        else:
            if one.kind is one.KEYWORD_ONLY and not keyword_only:
                parts.append("*")
                keyword_only = True
            default = "" if one.default is one.empty else " = ..."
            parts.append(f"{one.name}: {_simple(one.annotation)}{default}")
    return Overload(tuple(parts), _simple(found.return_annotation))


def _simple(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else "Any"
    return text if SIMPLE.fullmatch(text) else "Any"


# `torch.float`, `torch.int` and `torch.bool` are dtypes, and tensors have methods of these names: annotations must not mean those.
BUILTINS = re.compile(r"(?<![\w.])(int|float|bool|str|complex|tuple|type)(?![\w.])")


def written(name: str, forms: list[Overload], doc: str | None, *, indent: str = "") -> str:
    """Write a function with its forms; editors show the first line of its docstring, which stands in the first form."""
    lines = []
    for at, form in enumerate(forms):
        if len(forms) > 1:
            lines.append(f"{indent}@overload\n")
        parts = [re.sub(r"(?<=: ).*", lambda m: BUILTINS.sub(r"builtins.\1", m[0]), part) for part in form.parameters]
        result = BUILTINS.sub(r"builtins.\1", form.returned)
        lines.append(f"{indent}def {name}({', '.join(parts)}) -> {result}:")
        lines.append(" ...\n" if at or not doc else f"\n{indent}    {quoted(doc)}\n")
    return "".join(lines)


def quoted(doc: str) -> str:
    """Write the first line of a docstring as source."""
    line = doc.strip().splitlines()[0].replace("\\", "\\\\")
    return f'"""{line}"""' if not line.endswith('"') else f"'''{line}'''"
