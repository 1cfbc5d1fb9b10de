"""The text of public functions in their quick forms. See Note [Forms of a public function]."""

from __future__ import annotations

from typing import Any

from .overrides import ALIASES, parameters_of

_QUICK_FORM = """
def call({signature}):
    try:
        if {plain}:
            return {function}({straight})
    except Exception as _error:  # costs nothing as long as nothing is raised; no parameter has a name that begins so
        if (_refusal := refused(_error, ({positional}), {more}, {{{named}}})) is not None:
            raise _refusal from None
        if (_numbers := with_numbers(({positional}), {more}, {{{named}}})) is None:
            raise
        return general(*_numbers)
    return unusual(({positional}), {more}, {{{named}}})
"""


def written(function: Any, out: bool, kinds: dict[str, Any]) -> str:
    """Write a public function in its quick form.

    What follows the positional parameters is positional too, after one that nothing should be given for: Python fills
    defaults of such parameters in a third of the time that keyword-only ones take.
    """
    positional, keywords, rest = parameters_of(function)
    required = len(positional) - len(function.__defaults__ or ())
    others = keywords + (("out",) if out else ())
    taken = {*positional, *others}
    in_python = not kinds  # there torch does not know NumPy's words
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
            optional = name in (function.__kwdefaults__ or {}) or required <= k < len(positional)
            plain.append(f"({name} is default_{name} or {test})" if optional else test)
    plain += ["out is None"] if out else []
    plain += [" is ".join(["more", *aliases, "NOTHING"])] if rest is None else []
    plain += [f"plain_types.issuperset(map(type, {rest}))"] if rest is not None and not positional else []
    straight = [*positional, *([f"*{rest}"] if rest else []), *(f"{name}={name}" for name in keywords)]
    return _QUICK_FORM.format(
        signature=", ".join(
            f"{n}=0" if n[0] != "*" else n for n in (*positional, f"*{rest}" if rest else "more", *others, *aliases)
        ),
        plain=" and ".join(plain) or "True",
        function="function",
        straight=", ".join(straight),
        positional="".join(f"{name}, " for name in positional),
        more=rest or "more",
        named=", ".join(f"{name!r}: {name}" for name in (*others, *aliases)),
    )


def spreading(function: Any) -> str:
    """Write the quick form of a method that takes sizes one by one; like torch it looks at the type of the first."""
    (tensor,), keywords, _ = parameters_of(function)
    nothing_else = " is ".join([*keywords, "NOTHING"])
    return _QUICK_FORM.format(
        signature=", ".join([f"{tensor}=0", "*given", *(f"{name}=0" for name in keywords)]),
        plain=f"given and type({tensor}) in plain_types and type(given[0]) in size_types and {nothing_else}",
        function="together",
        straight=f"{tensor}, given if len(given) > 1 else given[0]",
        positional=f"{tensor}, ",
        more="given",
        named=", ".join(f"{name!r}: {name}" for name in keywords),
    )
