"""The forms of public functions, made at their first call. See Note [Forms of a public function]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ._generated import emit, reading
from ._modes import current_mode
from ._size import Size
from ._tracebacks import hide
from .overrides import (
    ALIASES,
    FOR_ASKING,
    MISSING,
    NOTHING,
    arguments,
    flat,
    handle_torch_function,
    parameters_of,
    received,
    refusal,
    taken_by_others,
    taken_over,
    tensor_layer,
)

SIZE_TYPES = frozenset((int, tuple, list, Size))  # of the first of sizes: like torch, methods look at no other


def make_forms(call: Any, function: Any, out: bool, old_forms: bool, together: Any) -> None:
    """Give a public function, at its first call, what its forms call; and its form."""
    plain_types = tensor_layer()._base.plain_types
    defaults = function.__defaults__ or ()
    defaults = (MISSING,) * (len(parameters_of(function)[0]) - len(defaults)) + defaults
    named = function.__kwdefaults__ or {}
    keyword_defaults = {name: named.get(name, MISSING) for name in parameters_of(function)[1]}
    keyword_defaults |= {"out": None} if out else {}

    def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if taken_over(flat(args, kwargs)):
            relevant = flat(args, kwargs)
            args, kwargs = arguments().as_handed_over(call, args, kwargs)
            return handle_torch_function(call, relevant, *args, **kwargs)
        sizes = together is not None and not kwargs and len(args) > 1 and type(args[1]) in SIZE_TYPES
        if not sizes and not _surely_taken(parameters_of(function)[0], plain_kinds(), args, kwargs):
            args, kwargs = arguments().taken(call, args, kwargs)
        given = args, kwargs
        try:
            for alias in kwargs.keys() & ALIASES.keys():  # NumPy's words, which torch takes as well
                positional, keywords, _ = parameters_of(function)
                is_its_own = alias in positional or (alias in keywords and ALIASES[alias] not in keywords + positional)
                if ALIASES[alias] not in kwargs and not is_its_own:
                    kwargs = {**kwargs, ALIASES[alias]: kwargs[alias]}
                    del kwargs[alias]
            if old_forms and len(args) > len(defaults):
                args, kwargs = tensor_layer()._recording.old_forms.present_form(call.__name__, call, args, kwargs)
            if (autocast := current_mode().autocast) is not None:
                casting = import_module(".tensor._recording.autocast", __package__)
                args, kwargs = casting.cast_arguments(call, autocast, args, kwargs)
            if out and (target := kwargs.get("out")) is not None:
                kwargs = {name: value for name, value in kwargs.items() if name != "out"}
                return tensor_layer()._recording.out.call_into(function, args, kwargs, target)
            if out and "out" in kwargs:
                kwargs = {name: value for name, value in kwargs.items() if name != "out"}
            return function(*args, **kwargs)
        except Exception as error:
            if (other := refusal(call, *given, error)) is not None:
                raise other from other.__cause__
            if "out" in given[1] or (numbers := arguments().with_numbers(call, *given)) is None:
                raise
        return function(*numbers[0], **numbers[1])

    def given(values: tuple[Any, ...], more: Any, named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as they were given. `more` follows the positional ones, or is a tuple of such."""
        by_name = {name: value for name, value in named.items() if value is not keyword_defaults.get(name)}
        if more is not NOTHING and not (type(more) is tuple and not more):
            if type(more) is tuple and parameters_of(function)[2] is not None:
                args = values + more
            else:
                # what stands in the places after it was given by position, up to the first that was not given
                count = next((k for k, name in enumerate(named) if name not in by_name), len(named))
                by_position = [named[name] for name in list(named)[:count]]
                return (*values, more, *by_position), dict(list(by_name.items())[count:])
            kwargs: dict[str, Any] = {}
        else:
            aliased = [ALIASES[name] for name in by_name if name in ALIASES]
            args, kwargs = _as_given(parameters_of(function)[0], defaults, values, aliased)
        kwargs.update(by_name)
        return args, kwargs

    def refused(error: Exception, *call_given: Any) -> BaseException | None:
        args, kwargs = given(*call_given)
        return None if taken_by_others(args, kwargs) else refusal(call, args, kwargs, error)

    def with_numbers(*call_given: Any) -> Any:
        args, kwargs = given(*call_given)
        return (args, kwargs) if taken_by_others(args, kwargs) else arguments().with_numbers(call, args, kwargs)

    def unusual(*call_given: Any) -> Any:
        return general(*given(*call_given))

    @cache
    def plain_kinds() -> dict[str, Any]:
        found: dict[str, Any] = dict(arguments().plain_kinds(call))
        known = {**dict(zip(parameters_of(function)[0], defaults, strict=True)), **keyword_defaults}
        for name, some in found.items():
            if some and name in known and known[name] is not MISSING and type(known[name]) not in some:
                found[name] = (*some, type(known[name]))
        return found

    names = call.__globals__
    names |= {"Tensor": tensor_layer()._base.Tensor, "plain_types": plain_types, "general": general, "unusual": unusual}
    names |= {"hide": hide, "refused": refused, "with_numbers": with_numbers, "NOTHING": NOTHING}
    names.update({f"kinds_of_{n}": frozenset(some) for n, some in plain_kinds().items() if some})
    names.update({f"default_{n}": value for n, value in zip(parameters_of(function)[0], defaults, strict=True)})
    names.update({f"default_{n}": value for n, value in keyword_defaults.items()})
    if together is None:
        text = written(
            function, out, plain_kinds(), arguments().is_bound_by_python(call), arguments().has_several(call)
        )
    else:
        text = spreading(function, together)
    names["size_types"] = SIZE_TYPES
    made = emit(f"public function {function.__name__}", text, {})["call"]
    plain = reading(names, made.__code__, call.__name__)
    if parameters_of(function)[2] is None:
        count = made.__code__.co_argcount
        known = (*defaults, NOTHING, *keyword_defaults.values())
        plain.__defaults__ = known + (None,) * (count - len(known))
    else:
        plain.__defaults__, plain.__kwdefaults__ = defaults, keyword_defaults
    names |= FOR_ASKING | {"plain": plain}
    call.__defaults__, call.__kwdefaults__ = plain.__defaults__, plain.__kwdefaults__
    received(call, plain.__code__)  # last: another thread may be calling


def kinds_by_position(call: Any, function: Any) -> tuple[Any, ...]:
    """Return the types that a function's positional parameters surely take; None where there is nothing to look at."""
    kinds = arguments().plain_kinds(call)
    positional, _, rest = parameters_of(function)
    if rest is not None or not kinds or function.__globals__["__name__"].endswith("._functions.creation"):
        return ()  # those of creation look at sizes themselves
    others = {"input": "self", "self": "input", "from_": "from"}  # which is no name in Python
    found = [kinds.get(name, kinds.get(others.get(name, ""), ())) for name in positional]
    return tuple([some if some is None else frozenset(some) for some in found]) if any(found) else ()


def in_present_words(
    call: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], kinds: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments by torch's names where they were given by NumPy's; raise torch's error for those that it refuses."""
    taken = not kwargs or _surely_taken((), arguments().plain_kinds(call), (), kwargs)
    for value, some in zip(args, kinds, strict=False):
        taken = taken and (some is None or type(value) in some)
    if not taken:
        args, kwargs = arguments().taken(call, args, kwargs)
        names = parameters_of(function)[0] + parameters_of(function)[1]
        for word in kwargs.keys() & ALIASES.keys() - {*names}:
            name = ALIASES[word]
            kwargs[name if name in names or name != "input" else names[0]] = kwargs.pop(word)
    return args, kwargs


def _surely_taken(names: tuple[str, ...], kinds: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Tell whether torch takes the arguments, as far as their types tell."""
    if not kinds:
        return True
    if len(args) > len(names):
        return False
    tensor = tensor_layer()._base.Tensor
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        some = kinds.get(name, ())
        if some is None or type(value) in some or (value is None and name == "out"):
            continue
        if not (isinstance(value, tensor) and tensor in some):
            return False
    return True


def _as_given(
    names: tuple[str, ...], defaults: tuple[Any, ...], values: tuple[Any, ...], aliased: Sequence[str]
) -> tuple[Any, dict[str, Any]]:
    """Guess which values were given, by position as far as can be: not defaults at the end, nor what an alias gives."""
    given = [
        value is not MISSING and (names[k] not in aliased or value is not defaults[k]) for k, value in enumerate(values)
    ]
    count = len(values)
    while count and values[count - 1] is defaults[count - 1]:
        count -= 1
    first = next((k for k in range(count) if not given[k]), count)
    return values[:first], {names[k]: values[k] for k in range(first, count) if given[k]}


_QUICK_FORM = """
def call({signature}):
    try:  # costs nothing as long as nothing is raised; no parameter has a name that begins like those below
        try:
            if {plain}:
                return {function}({straight})
        except Exception as _error:
            if (_refusal := refused(_error, ({positional}), {more}, {{{named}}})) is not None:
                raise _refusal from _refusal.__cause__
            if (_numbers := with_numbers(({positional}), {more}, {{{named}}})) is None:
                raise
            return general(*_numbers)
        return unusual(({positional}), {more}, {{{named}}})
    except Exception as _error:
        hide(_error)
        raise
"""


def written(function: Any, out: bool, kinds: dict[str, Any], in_python: bool, several: bool) -> str:
    """Write a public function in its quick form.

    If torch has several forms of it, it takes unknown keywords (20 ns): then torch lists the forms, where Python names the word.

    What follows the positional parameters is positional too, after one that nothing should be given for: Python fills
    defaults of such parameters in a third of the time that keyword-only ones take.
    """
    positional, keywords, rest = parameters_of(function)
    required = len(positional) - len(function.__defaults__ or ())
    defaults = dict(zip(positional[required:], function.__defaults__ or (), strict=True)) | (
        function.__kwdefaults__ or {}
    )
    others = keywords + (("out",) if out else ())
    taken = {*positional, *others}
    aliases = [
        alias
        for alias, name in ALIASES.items()
        if rest is None and name in taken and alias not in taken and not (in_python and name in ("input", "other"))
    ]
    plain = []
    for k, name in enumerate((*positional, *keywords)):
        some = kinds.get(name)
        if not some:
            # required arguments are looked at, and the second in any case: that may be another tensor, as in max(a, b)
            plain += [f"type({name}) in plain_types"] if k < min(max(required, 2), len(positional)) else []
        elif some == (bool,):
            plain.append(f"({name} is False or {name} is True)")
        else:
            test = f"type({name}) is int" if some == (int,) else f"type({name}) in kinds_of_{name}"
            if name in defaults:
                test = f"({name} is {'None' if defaults[name] is None else f'default_{name}'} or {test})"
            elif tensor_layer()._base.Tensor in some:
                test = f"(type({name}) is Tensor or {test})"
            plain.append(test)
    plain += ["out is None"] if out else []
    plain += ["more is NOTHING", *(f"{alias} is None" for alias in aliases)] if rest is None else []
    plain += [f"plain_types.issuperset(map(type, {rest}))"] if rest is not None and not positional else []
    straight = [*positional, *([f"*{rest}"] if rest else []), *(f"{name}={name}" for name in keywords)]
    unknown = ("**unknown",) if several else ()
    plain += ["not unknown"] if several else []
    return _QUICK_FORM.format(
        signature=", ".join(
            f"{n}=0" if n[0] != "*" else n
            for n in (*positional, f"*{rest}" if rest else "more", *others, *aliases, *unknown)
        ),
        plain=" and ".join(plain) or "True",
        function="function",
        straight=", ".join(straight),
        positional="".join(f"{name}, " for name in positional),
        more=rest or "more",
        named=", ".join([*(f"{name!r}: {name}" for name in (*others, *aliases)), *unknown]),
    )


def spreading(function: Any, together: Any) -> str:
    """Write the quick form of a method that takes sizes one by one; like torch it looks at the type of the first."""
    (tensor,), keywords, _ = parameters_of(function)
    plain = [f"(type({tensor}) is Tensor or type({tensor}) in plain_types)", *(f"{n} is NOTHING" for n in keywords)]
    if together.__defaults__ == (None,):  # of the dims, which are not needed
        plain.append("(not given or type(given[0]) in size_types)")
        sizes = "given if len(given) > 1 else given[0] if given else None"
    else:
        plain.append("given and type(given[0]) in size_types")
        sizes = "given if len(given) > 1 else given[0]"
    return _QUICK_FORM.format(
        signature=", ".join([f"{tensor}=0", "*given", *(f"{name}=0" for name in keywords)]),
        plain=" and ".join(plain),
        function="together",
        straight=f"{tensor}, {sizes}",
        positional=f"{tensor}, ",
        more="given",
        named=", ".join(f"{name!r}: {name}" for name in keywords),
    )
