"""Methods that a Tensor subclass hands to `__torch_function__`.

Functions and elementwise operators look for subclasses themselves. The methods here do not, so that plain Tensors pay
nothing; a subclass gets versions of its own when it is made.
"""

from __future__ import annotations

import functools
from typing import Any

from ...overrides import handle_torch_function, taken_over

METHODS = """
__getitem__ __setitem__ __len__ __contains__ __bool__ __float__ __int__ __complex__ __index__
__floordiv__ __mod__ __pow__ __rpow__ __rsub__ __rtruediv__ __rfloordiv__ __rmod__ __matmul__ __rmatmul__ __eq__ __ne__ __pos__
__iadd__ __isub__ __imul__ __itruediv__ __ipow__
unfold view expand expand_as view_as contiguous detach to item tolist numpy float double half bfloat16 int long short char byte
bool new_zeros new_ones new_empty new_full new_tensor copy_ fill_ zero_ masked_fill_ index_put_ detach_ requires_grad_
add_ sub_ mul_ div_ pow_ neg_ exp_ sqrt_ tanh_ sigmoid_ relu_ clamp_ t_ transpose_ unsqueeze_ squeeze_ uniform_ normal_
backward register_hook retain_grad size dim numel stride is_contiguous type_as cpu cuda
""".split()  # noqa: SIM905 - names read better as text
PROPERTIES = ("T", "mT", "H", "mH", "real", "imag", "data", "grad")


def take_over(cls: Any, tensor_class: Any) -> None:
    """Give a subclass the methods and properties that go through its `__torch_function__`."""
    own = {
        name
        for base in cls.__mro__
        if base is not tensor_class and issubclass(base, tensor_class)
        for name in vars(base)
    }
    for name in METHODS:
        if name not in own and hasattr(tensor_class, name):
            setattr(cls, name, seen_method(getattr(tensor_class, name), name))
    for name in PROPERTIES:
        if name not in own:
            setattr(cls, name, _property(getattr(tensor_class, name), name))


def _handled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not taken_over(args):
        return function(*args, **kwargs)
    return handle_torch_function(function, args, *args, **kwargs)


def seen_method(function: Any, name: str) -> Any:
    """Return a method that goes through `__torch_function__` of modes and subclasses, which get the function itself."""

    @functools.wraps(function, assigned=("__doc__",), updated=())
    def method(*args: Any, **kwargs: Any) -> Any:
        return _handled(function, args, kwargs)  # a function of the package, too: all may be given by name

    method.__name__ = method.__qualname__ = name
    return method


def _property(of_tensor: property, name: str) -> property:
    def read(self: Any) -> Any:
        return _handled(_getter, (self,), {})

    def _getter(self: Any) -> Any:
        return of_tensor.__get__(self, type(self))

    _getter.__name__ = "__get__"
    return property(read, of_tensor.fset, of_tensor.fdel, name)
