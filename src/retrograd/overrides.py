"""`__torch_function__`: how subclasses and modes take over calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial, wraps
from importlib import import_module
from types import FunctionType
from typing import Any, Self, cast, overload

from ._absent import finder
from ._device import device
from ._dtypes import dtype
from ._generated import reading as _reading
from ._modes import (
    NO_GRAD,
    PLAIN,
    Block,
    Entry,
    Mode,
    change_mode,
    current_mode,
    push,
    read_mode,
    restore_mode,
    using,
    write,
)
from ._places import is_own, own_text
from ._size import Size
from ._tracebacks import hide as _hide

VARARGS = 0x04  # inspect.CO_VARARGS; inspect takes long to import


@cache
def tensor_layer() -> Any:
    return import_module(".tensor", __package__)  # `from . import tensor` would find the function of that name


def has_torch_function(values: Iterable[Any]) -> bool:
    """Tell whether any of the values takes calls over by `__torch_function__`."""
    by_function = tensor_layer()._recording.unusual_calls.by_function
    return any(by_function(value) for value in values)


def taken_over(values: Iterable[Any]) -> bool:
    """Tell whether any of the values, or a mode, takes calls over, by `__torch_function__` or by `__torch_dispatch__`."""
    overridden = tensor_layer()._recording.record.overridden
    return bool(current_mode().dispatch_modes) or any(overridden(value) for value in values)


def unwatched(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the package that goes another way where modes are on, as if modes that only watch were off."""
    modes = current_mode().function_modes
    if not modes or not all(mode._only_watches for mode in modes):
        return function(*args)
    with using(function_modes=()):
        return function(*args)


def _overloaded(values: Iterable[Any]) -> list[Any]:
    """Collect one value per overriding class, subclasses before their parents, else in order."""
    by_function = tensor_layer()._recording.unusual_calls.by_function
    found: list[Any] = []
    kinds: list[type] = []
    for value in values:
        kind = type(value)
        if kind in kinds or not by_function(value):
            continue
        at = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
        found.insert(at, value)
        kinds.insert(at, kind)
    return found


def _mixed(values: Iterable[Any]) -> TypeError | None:
    """Return the error for a tensor of an installed torch among values."""
    for value in values:
        kind = type(value)
        if not isinstance(value, tensor_layer()._base.TensorBase) and hasattr(kind, "untyped_storage"):
            return TypeError(
                f"got a tensor of another library, {kind.__module__}.{kind.__name__} with shape {tuple(value.shape)}, among "
                "retrograd's\nHint: convert it with retrograd.tensor(x), or with retrograd.from_dlpack(x), which shares its memory."
            )
    return None


def refuse_other_torch(values: Iterable[Any]) -> None:
    """Raise an error for a tensor of an installed torch: each library would hand the call back to the other."""
    if (error := _mixed(values)) is not None:
        raise error


def refuse_function_of_other_torch(function: Any) -> None:
    """Raise an error where an installed torch asks our tensors to run one of its own functions: it would ask again."""
    if _is_of_other_torch(function):
        name = getattr(function, "__name__", str(function))
        raise TypeError(
            f"'{name}' is a function of torch, an installed library besides retrograd, and got a tensor of retrograd\n"
            "Hint: call retrograd's function of that name, or convert the tensor with torch.from_dlpack(x)."
        )


def _is_of_other_torch(function: Any) -> bool:
    described = getattr(function, "__self__", None)  # by the getter of an attribute
    if isinstance(described, property):
        function = described.fget
    code = getattr(function, "__code__", None)
    if code is None and described is not None:
        function = described
    module = getattr(getattr(function, "__objclass__", function), "__module__", None) or ""
    return module.partition(".")[0] == "torch" and (code is None or not is_own(code.co_filename))


def handle_torch_function(function: Callable[..., Any], relevant: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Call `__torch_function__` of the innermost mode, then of each overriding class, until one answers."""
    relevant = list(relevant)
    refuse_other_torch(relevant)
    if hasattr(
        function, "one_by_one"
    ):  # torch's own function has taken a list apart before it asks who takes the call over
        args = function.one_by_one(args)
    operator = function
    if (method := getattr(function, "handed_over_as", None)) is not None:
        function = getattr(tensor_layer()._base.Tensor, method)
    types = tuple(type(value) for value in _overloaded(relevant) if type(value).__name__ != "Tensor")
    modes = current_mode().function_modes
    if modes:
        mode = modes[-1]
        before = current_mode()
        try:
            change_mode(function_modes=modes[:-1])
            result = mode.__torch_function__(function, types, args, kwargs)
        finally:
            restore_mode(before)
        if result is not NotImplemented:
            return result
    for value in _overloaded(relevant):
        given = operator if getattr(type(value), "tells_operators", False) else function
        result = type(value).__torch_function__(given, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if current_mode().dispatch_modes or any(type(one) in tensor_layer()._base.dispatch_types for one in relevant):
        return import_module("._dispatch", __package__).call(function, args, kwargs)
    if method is not None or getattr(operator, "__name__", "") in OPERATORS:
        return NotImplemented  # the other operand is asked, and Python says what is wrong
    return _refuse_unanswered(function, types, modes)


# of two operands, besides those that are handed over under another name
OPERATORS = frozenset(
    """__pow__ __rpow__ __rsub__ __rdiv__ __floordiv__ __rfloordiv__ __rmod__ __rmatmul__ __eq__ __lshift__ __rlshift__ __rshift__
    __rrshift__""".split()  # noqa: SIM905 - names read better as text
)


def _refuse_unanswered(function: Any, types: Any, modes: Any) -> Any:
    name = f"torch.{getattr(function, '__name__', function)}"
    if isinstance(function, FunctionType) and arguments().is_bound_by_python(function):
        name = resolve_name(function) or name
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}"
        )
    tried = f"\n  - mode object {modes[-1]!r}" if modes else ""
    tried += "".join(f"\n  - tensor subclass {kind}" for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{tried}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def is_tensor_like(value: Any) -> bool:
    """Tell whether a value is a Tensor or acts as one."""
    return isinstance(value, tensor_layer()._base.Tensor) or hasattr(value, "__torch_function__")


class TakingOver(Block):
    """A block in which calls may be taken over. See Note [What a mode sees] in `_watching.py`."""

    def _block_entry(self, before: Mode, entered: Mode) -> Entry:
        entry = super()._block_entry(before, entered)
        entry.holds = hold()
        return entry


class TorchFunctionMode(TakingOver):
    """A mode that sees every call; override `__torch_function__(self, func, types, args=(), kwargs=None)`."""

    _block_fields = ("function_modes",)
    _only_watches = False  # whether it runs every call as it is, so that nobody need go another way because of it

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError("TorchFunctionMode: override __torch_function__")

    def __enter__(self) -> Self:
        before = current_mode()
        entered = before._replace(function_modes=(*before.function_modes, self))
        entry = self._block_entry(before, entered)
        write[entered]
        push[entry]
        return self


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that runs every call as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def disable_torch_function() -> using:
    """Run a block in which subclasses do not take calls over."""
    return using(torch_function=False)


def enable_reentrant_dispatch() -> using:
    """Run a block inside a `__torch_dispatch__` in which operations are recorded as they are outside of it."""
    return using(grad=True)


ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
ALIASES["split_size"] = "split_size_or_sections"  # of the method


class _Missing:
    """The type of what stands for a required argument that was not given; never among `plain_types`."""


MISSING = _Missing()
NOTHING = _Missing()  # stands for an argument that may be left out, where None means something


Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


@overload
def declared(function: None = None, **facts: Any) -> Decorator: ...
@overload
def declared(function: Any, **facts: Any) -> Any: ...
def declared(function: Any = None, **facts: Any) -> Any:
    """Say something about a public function: see Note [What is said of a public function]."""
    if function is None:
        return partial(declared, **facts)
    for name, value in facts.items():
        setattr(function, name, value)
    return function


@overload
def takes_out(function: None = None, **facts: Any) -> Decorator: ...
@overload
def takes_out(function: Function, **facts: Any) -> Function: ...
def takes_out(function: Any = None, **facts: Any) -> Any:
    """Make a public function overridable, and let it write its result into `out=`."""
    return overridable(function, out=True, **facts)


@overload
def takes_old_forms(function: None = None, **facts: Any) -> Decorator: ...
@overload
def takes_old_forms(function: Function, **facts: Any) -> Function: ...
def takes_old_forms(function: Any = None, **facts: Any) -> Any:
    """Add `out=` like `takes_out`, and let the function take the positional forms that torch has deprecated."""
    return overridable(function, out=True, old_forms=True, takes_old_forms=True, **facts)


def spreading(function: Any) -> Any:
    """Make the method of a function of the package: it takes sizes or dims one by one as well, as in `x.permute(1, 0)`."""
    written = getattr(function, "__wrapped__", function)
    positional, keywords, _ = parameters_of(written)

    def method(*args: Any, **named: Any) -> Any:
        return written(*args[:1], *_together(args[1:]), **named)

    names = [*positional[1:], *keywords]
    names += [alias for alias, name in ALIASES.items() if name in names and alias not in names]
    method.parameters = positional[:1], tuple(names), "given"  # type: ignore[attr-defined]
    method.__kwdefaults__ = dict.fromkeys(names, NOTHING)
    method.__name__, method.__qualname__, method.__doc__ = written.__name__, written.__qualname__, written.__doc__
    method.__module__, method.__wrapped__ = written.__module__, written  # type: ignore[attr-defined]
    made: Any = overridable(method, together=written)
    made.is_method = True
    return made


def _together(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what stands for sizes that were given one by one: a tuple with one tuple, or with the only one as it is."""
    return (given,) if len(given) > 1 else given


@overload
def overridable(function: None = None, **facts: Any) -> Decorator: ...
@overload
def overridable(function: Function, **facts: Any) -> Function: ...
def overridable(
    function: Any = None, *, out: bool = False, old_forms: bool = False, together: Any = None, **facts: Any
) -> Any:
    """Let subclasses and modes take over a public function; plain Tensors go straight through.

    Note [Forms of a public function]
    As long as nothing in the program takes calls over, a public function is text with the signature of what it wraps:
    a look at the types of its first arguments, and the call (half the time of packing and unpacking `*args`). It is
    written at the first call, so that importing stays quick. While there is a class or mode that takes calls over, every
    public function has `asking` as its code, which gets arguments exactly as they were given. The quick form of a method
    that takes sizes one by one hands them to `together`, in one.

    Note [What is said of a public function]
    What cannot be read off a function is said where it is defined, by keywords of its decorator: `@takes_out(raised="cpu")`.
    - `forms`, where they are not those of torch's function of that name: words among `function` (of the package), `method`
      (of Tensor), `in_place` (a method `name_` that writes the result into the tensor), and `spread` (the method takes sizes
      one by one as well). No word at all: only by chance the name is one of torch's. tools/make_names.py reads this.
    - `in_functional`: False if it stands in a file of `nn.functional`, and is of the package only.
    - `seen=False`: torch's modes do not see its calls.
    - `lowered`, `raised`: the devices on which autocast computes it in half precision, or in float32.
    - `in_place`: what makes its method in place, where that is not `inplace` (`tensor/_aliasing/inplace.py`).
    - `out_dtype`: its `out=` must have the dtype of the result; "kernel" and "result" are the two sentences that torch has for
      that.
    """
    if function is None:
        return partial(overridable, out=out, old_forms=old_forms, together=together, **facts)
    declared(function, **facts)
    names = {
        "first": _first,
        "function": function,
        "out": out,
        "old_forms": old_forms,
        "together": together,
        "_hide": _hide,
    }
    call = _reading(names, _at_first.__code__, function.__name__)
    names["call"] = call
    _dressed(call, function)
    call.takes_out = out
    return call


def overridable_as(name: str, function: Any, doc: str, *, out: bool = False, **facts: Any) -> Any:
    """Make a public function of what a family shares, such as the poolings along one, two and three axes."""
    return overridable(called(function, name, doc), out=out, **facts)


def called(function: Any, name: str, doc: str | None) -> Any:
    """Return a function that was made for a family, with a name and a description of its own."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _dressed(call: Any, function: Any) -> Callable[..., Any]:
    """Give what is called for a function its names, and say that it refuses arguments in torch's words."""
    call.__dict__.update(function.__dict__)
    call.__name__ = function.__name__
    call.__qualname__ = function.__qualname__
    call.__doc__ = function.__doc__
    call.__module__ = function.__module__
    call.__wrapped__ = function
    call.refuses = True
    return call  # type: ignore[no-any-return]


def _first(args: tuple[Any, ...], kwargs: dict[str, Any], call: Any, *made_of: Any) -> Any:
    _forms().make_forms(call, *made_of)
    return call(*args, **kwargs)


def refusal(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: BaseException) -> BaseException | None:
    """Return what torch says about a call that raised an error, None if the error says it. See Note [Refusals]."""
    if (other := _mixed(flat(args, kwargs))) is not None:
        return other
    return arguments().refusal(function, args, kwargs, error)  # type: ignore[no-any-return]


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a public function that nothing takes over refuse arguments in torch's words. See Note [Refusals]."""

    kinds: Any = None  # of positional arguments

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal kinds
        try:
            if kinds is None:
                kinds = _forms().kinds_by_position(call, function)
            if len(args) == 1 and not kwargs:
                if not kinds or (some := kinds[0]) is None or type(args[0]) in some:
                    return function(args[0])  # one argument needs no unpacking
            elif not kwargs and not kinds:
                return function(*args)
            args, kwargs = _forms().in_present_words(call, function, args, kwargs, kinds)
            return function(*args, **kwargs)
        except Exception as error:
            try:
                return answered(call, args, kwargs, error)
            except Exception as other:
                _hide(other)
                raise

    # Code of its own, of which the interpreter takes notes that hold for this function, under the name of a public function like
    # those that are written as text, through which `note_cut` looks for the user's call.
    call.__code__ = call.__code__.replace(co_filename=own_text("a public function"))
    call.__annotations__ = function.__annotations__
    return _dressed(call, function)


def taken_by_others(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether something besides tensors takes a call over. Nobody looks for it before a call has failed."""
    tensor = tensor_layer()._base.Tensor
    return has_torch_function(value for value in flat(args, kwargs) if not isinstance(value, tensor))


def answered(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """Return what a public function that nothing takes over answers after an error, or raise it, in torch's words if it has any."""
    if taken_by_others(args, kwargs) and _is_operation(function):
        return handle_torch_function(function, flat(args, kwargs), *args, **kwargs)
    words = {ALIASES.get(word, word): value for word, value in kwargs.items()}  # NumPy's, which torch takes as well
    if words.keys() != kwargs.keys() and isinstance(error, TypeError) and "unexpected keyword" in str(error):
        return function(*args, **words)
    if (other := refusal(function, args, kwargs, error)) is not None:
        raise other from other.__cause__
    if (numbers := arguments().with_numbers(function, args, kwargs)) is not None:
        return function(*numbers[0], **numbers[1])
    raise error


def answered_by_name(function: Any, values: dict[str, Any], error: Exception) -> Any:
    """Answer like `answered`, for a call of which all parameter values are known: defaults where none were given."""
    written = getattr(function, "raw", function)
    positional, keywords, rest = parameters_of(written)
    defaults, options = written.__defaults__ or (), written.__kwdefaults__ or {}
    args = [values[name] for name in positional]
    while (
        defaults
        and len(args) > len(positional) - len(defaults)
        and args[-1] is defaults[len(args) - len(positional) - 1]
    ):
        args.pop()
    kwargs = {name: values[name] for name in keywords if values[name] is not options[name]}
    return answered(function, (*args, *(values[rest] if rest else ())), kwargs, error)


def refuses_itself(function: Callable[..., Any]) -> Callable[..., Any]:
    """Say that a public function does what `refusing` would do, without another call."""
    function.refuses = True  # type: ignore[attr-defined]
    return function


@cache
def _forms() -> Any:
    return import_module("._quick_forms", __package__)


@cache
def arguments() -> Any:
    """Return the module that knows torch's signatures; it is loaded when it is needed."""
    return import_module("._arguments", __package__)


# what the code of public functions finds among the names of each
first = call = function = out = old_forms = together = general = plain = cast("Any", None)


def _at_first(*args: Any, **kwargs: Any) -> Any:
    try:
        return first(args, kwargs, call, function, out, old_forms, together)
    except Exception as error:
        _hide(error)
        raise


def asking(*args: Any, **kwargs: Any) -> Any:
    try:
        mode = read_mode()
        if (
            (mode is PLAIN or mode is NO_GRAD)
            and unseeing(map(type, args))
            and (not kwargs or unseeing(map(type, kwargs.values())))
        ):
            if held[0]() is None:
                unneeded()
            return plain(*args, **kwargs)
        mode = current_mode()
        if mode.autocast is None and not mode.function_modes and not taken_over(flat(args, kwargs)):
            return plain(*args, **kwargs)
        return general(args, kwargs)
    except Exception as error:
        _hide(error)
        raise


def flat(args: Any, kwargs: Any) -> list[Any]:
    flat: list[Any] = []
    for arg in (*args, *kwargs.values()):
        flat.extend(arg) if isinstance(arg, (list, tuple)) else flat.append(arg)
    return flat


# ---- who takes calls over: see Note [What a mode sees] in `_watching.py` ----
UNSEEING = {
    int,
    float,
    bool,
    str,
    slice,
    type(None),
    type(Ellipsis),
    dtype,
    device,
    Size,
}  # and the two classes of tensors
unseeing = UNSEEING.issuperset
held: list[Callable[[], Any]] = [
    lambda: None
]  # gives what everybody holds who takes calls over, as long as there is one
noted: list[Any] = []  # public functions that ask nobody
made: list[tuple[Any, Any, Any]] = []  # those that were called, with their plain and their asking code
watching: Any = None  # the module, once there has been something that takes calls over


def hold() -> Any:
    """Have public functions ask who takes their calls over, as long as the result is kept."""
    return import_module("._watching", __package__).hold()


def unneeded() -> None:
    """Be told of a call that nobody took over while nobody holds anything."""
    watching.unneeded()


FOR_ASKING = {
    one: globals()[one]
    for one in "NO_GRAD PLAIN current_mode _hide flat held read_mode taken_over unneeded unseeing".split()  # noqa: SIM905
}


def received(call: Any, code: Any) -> None:
    """Give a public function its plain code, or the asking one, which are exchanged from now on."""
    if watching is None:
        call.__code__ = code
        made.append((call, code, asking.__code__))
    else:
        watching.add(call, code, asking.__code__)


def may_take_over() -> bool:
    """Tell whether anything in the program may take calls over now."""
    return watching is not None and watching.asking


def asks_nobody(function: Any) -> Any:
    """Note a public function that asks for no mode until there is one."""
    noted.append(function) if watching is None else watching.note(function)
    return function


def parameters_of(function: Any) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """Return the names of positional parameters, of keyword-only ones, and of the sequence that takes the rest."""
    if hasattr(function, "parameters"):
        return function.parameters  # type: ignore[no-any-return]
    code = function.__code__
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    rest = names[count + keywords] if code.co_flags & VARARGS else None
    return names[:count], names[count : count + keywords], rest


# ---- questions about what can be taken over ----
NAMESPACES = ("", "nn.functional", "linalg", "fft", "special")  # where public operations stand, the package first
MAKERS = {
    "creation",
    "ranges",
    "generators",
    "exchange",
    "saving",
    "loading",
}  # files of functions that take no tensor, but:
TAKES_A_TENSOR = r"new_|.*_like$|__dlpack"


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """Make a function one that subclasses take over; `dispatcher` returns which of its arguments may."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


@cache
def _public_functions() -> dict[str, dict[str, Any]]:
    """Return the public functions of every namespace by name; methods of Tensor under "Tensor"."""
    package = import_module(__package__)
    tensor_class = tensor_layer()._base.Tensor
    found = {}
    for space in NAMESPACES:
        module = import_module(f".{space}", __package__) if space else package
        names = getattr(module, "__all__", None) if space else [*vars(package), *tensor_layer().later_functions]
        values = {name: getattr(module, name, None) for name in names or vars(module) if not name.startswith("_")}
        found[space] = {name: value for name, value in values.items() if isinstance(value, FunctionType)}
    listed = sorted(
        dir(tensor_class), key=lambda name: name.startswith("__")
    )  # add_ before __iadd__, which is the same
    methods = {name: getattr(tensor_class, name) for name in listed if name != "__class__"}
    found["Tensor"] = {name: value for name, value in methods.items() if isinstance(value, FunctionType)}
    return found


def _is_operation(function: Any) -> bool:
    written = function
    while hasattr(written, "__wrapped__"):
        written = written.__wrapped__
    module = written.__globals__["__name__"].split(".")[1:]  # the file, where `__module__` is the public home
    if module[:1] not in (["tensor"], ["nn"]) or function.__name__ in ("is_tensor", "is_storage"):
        return False
    return module[-1] not in MAKERS or re.match(TAKES_A_TENSOR, function.__name__) is not None


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return the functions that `__torch_function__` sees, by the module or class they belong to."""
    package = import_module(__package__)
    homes = {"Tensor": tensor_layer()._base.Tensor, "": package}
    return {
        homes.get(space) or import_module(f".{space}", __package__): [f for f in named.values() if _is_operation(f)]
        for space, named in _public_functions().items()
    }


def get_ignored_functions() -> set[Any]:
    """Return the public functions that `__torch_function__` never sees."""
    return {f for named in _public_functions().values() for f in named.values() if not _is_operation(f)}


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """Return, for every overridable function, one with its signature that returns -1."""
    import inspect

    def stand_in(function: Any) -> Callable[..., int]:
        def override(*args: Any, **kwargs: Any) -> int:
            return -1

        override.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return override

    return {f: stand_in(f) for functions in get_overridable_functions().values() for f in functions}


def resolve_name(function: Callable[..., Any]) -> str | None:
    """Return the name under which programs know a function: "torch.add", "torch.Tensor.add_", None if it is no operation."""
    for space, named in _public_functions().items():
        for name, value in named.items():
            if value is function and _is_operation(value):
                return ".".join(["torch", *([space] if space else []), name])
    owner = getattr(function, "__self__", None)  # of a property's __get__
    names = [name for name, value in vars(tensor_layer()._tensor.Tensor).items() if value is owner]
    return f"torch.Tensor.{names[0]}.__get__" if owner is not None and names else None


def is_tensor_method_or_property(function: Callable[..., Any]) -> bool:
    """Tell whether a function is a method of Tensor or the getter of one of its properties."""
    return getattr(function, "__name__", None) == "__get__" or any(
        f is function for f in _public_functions()["Tensor"].values()
    )


__getattr__ = finder("torch.overrides")
