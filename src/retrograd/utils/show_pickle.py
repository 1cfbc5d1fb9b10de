"""torch.utils.show_pickle: what a pickle holds, without running what it names. `python -m retrograd.utils.show_pickle file.pt`."""

from __future__ import annotations

import pickle
import pprint
import sys
import zipfile
from typing import Any, Self


class FakeObject:
    """What a pickle would have made by calling something, and what it would have set."""

    def __init__(self, module: str, name: str, args: Any) -> None:
        self.module, self.name, self.args = module, name, args
        self.state: Any = None

    def __repr__(self) -> str:
        state = "" if self.state is None else f"(state={self.state!r})"
        return f"{self.module}.{self.name}{self.args!r}{state}"

    def __setstate__(self, state: Any) -> None:
        self.state = state


class FakeClass:
    """Something that a pickle names."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name
        self.__new__ = self.fake_new  # type: ignore[assignment, method-assign]

    def __repr__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *args: Any) -> FakeObject:
        return FakeObject(self.module, self.name, args)

    def fake_new(self, *args: Any) -> FakeObject:
        """Stand for the class's own constructor."""
        return FakeObject(self.module, self.name, args[1:])


class DumpUnpickler(pickle._Unpickler):
    """Reads a pickle and makes stand-ins for all that it names."""

    def __init__(self, file: Any, *, catch_invalid_utf8: bool = False, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.catch_invalid_utf8 = catch_invalid_utf8

    def find_class(self, module: str, name: str) -> FakeClass:
        """Stand for a class or function."""
        return FakeClass(module, name)

    def persistent_load(self, pid: Any) -> FakeObject:
        """Stand for what lies beside the pickle."""
        return FakeObject("pers", "obj", (pid,))

    @classmethod
    def dump(cls, in_stream: Any, out_stream: Any) -> Any:
        """Print what a pickle holds, and return it."""
        value = cls(in_stream).load()
        pprint.pprint(value, stream=out_stream)
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def main(argv: list[str], output_stream: Any = None) -> int | None:
    """Print the pickle of a file, or the ones in an archive of torch."""
    if len(argv) != 2:
        print(f"usage: {argv[0]} file.pt", file=sys.stderr)
        return 2
    output = sys.stdout if output_stream is None else output_stream
    if not zipfile.is_zipfile(argv[1]):
        with open(argv[1], "rb") as file:
            DumpUnpickler.dump(file, output)
        return None
    with zipfile.ZipFile(argv[1]) as archive:
        for name in archive.namelist():
            if name.endswith(".pkl"):
                with archive.open(name) as file:
                    DumpUnpickler.dump(file, output)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv))
