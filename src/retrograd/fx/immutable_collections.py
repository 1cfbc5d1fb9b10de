"""Lists and dictionaries that a node holds as arguments: to change them, assign new ones, so that users stay counted."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils import _pytree

_HINT = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n"
    "    new_args = ... # copy and mutate args\n"
    "    node.args = new_args"
)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HINT}")


class immutable_list(list):  # type: ignore[type-arg]  # noqa: N801 - torch's name
    """A list that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):  # type: ignore[type-arg]  # noqa: N801 - torch's name
    """A dictionary that cannot be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


for _name in "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort".split():  # noqa: SIM905
    setattr(immutable_list, _name, _refuse)
for _name in "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update".split():  # noqa: SIM905
    setattr(immutable_dict, _name, _refuse)
_pytree.register_pytree_node(immutable_list, lambda x: (list(x), None), lambda values, _: immutable_list(values))
_pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
)
