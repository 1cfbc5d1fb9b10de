"""The bases of data pipes: datasets whose methods make further ones, `pipe.map(function).batch(2)`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset

T_co = TypeVar("T_co", covariant=True)


class DataChunk(list[Any]):
    """A batch of samples."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)
        super().__init__(self.items)

    def as_str(self, indent: str = "") -> str:
        """Write the samples, on lines that begin with some text."""
        return indent + "[" + ", ".join(str(one) for one in iter(self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Return an iterator over the samples."""
        yield from self.items


class _Pipe:
    """What both kinds share: methods that classes register under a name."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name) if not name.startswith("__") else None
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        made = functools.partial(function, self)
        functools.update_wrapper(made, function, assigned=("__doc__",))
        return made

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Give all pipes of a kind a method."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Give all pipes of a kind a method that makes a pipe of a class."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = lambda source, *args, **kwargs: cls_to_register(source, *args, **kwargs)

    def __repr__(self) -> str:
        return type(self).__qualname__

    __str__ = __repr__


class IterDataPipe(_Pipe, IterableDataset[T_co]):
    """A stream of samples. Going through it again begins it anew; an earlier iterator is then over."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = _one_at_a_time(cls.__iter__)  # type: ignore[method-assign]

    def reset(self) -> None:
        """Begin anew."""


class DFIterDataPipe(IterDataPipe[Any]):
    """A stream of data frames."""


def _one_at_a_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a new iterator end those before it, and begin the stream anew."""

    @functools.wraps(function)
    def begin(self: Any) -> Iterator[Any]:
        self._valid_iterator_id += 1
        number = self._valid_iterator_id
        self.reset()

        def run() -> Iterator[Any]:
            for one in function(self):
                if self._valid_iterator_id != number:
                    raise RuntimeError(
                        f"This iterator has been invalidated because another iterator has been created from the same "
                        f"IterDataPipe: {self!r}\nThis may be caused multiple references to the same IterDataPipe. We recommend "
                        "using `.fork()` if that is necessary."
                    )
                yield one

        return run()

    return begin


class MapDataPipe(_Pipe, Dataset[T_co]):
    """A table of samples by index."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class functional_datapipe:  # noqa: N801 - torch's name
    """Decorate a class of pipes: all pipes of its kind get a method that makes one."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        kind: Any = next((one for one in (IterDataPipe, MapDataPipe) if issubclass(cls, one)), None)
        if kind is None:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        kind.register_datapipe_as_function(self.name, cls)
        return cls


# ---- what torch checks of pipes if told to: types of arguments and samples, random orders ----
def argument_validation(f: Any) -> Any:
    """Leave a constructor as it is: types of arguments are not checked."""
    return f


runtime_validation = argument_validation


class _Switch:
    """A block in which a check is on, or off; the checks are not made."""

    def __init__(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


class guaranteed_datapipes_determinism(_Switch):  # noqa: N801 - torch's name
    """A block that would refuse pipes whose order is not determined."""


class runtime_validation_disabled(_Switch):  # noqa: N801 - torch's name
    """A block in which samples are not checked."""


def non_deterministic(arg: Any) -> Any:
    """Mark a class of pipes whose order is not determined, or say by a function which of its pipes are."""
    return arg if isinstance(arg, type) else (lambda cls: cls)


# Serialized by what they are: Python's pickles take functions that have a name.
_IterDataPipeSerializationWrapper = _MapDataPipeSerializationWrapper = functools.partial

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]
