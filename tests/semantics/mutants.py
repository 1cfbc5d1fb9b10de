"""Torch with one thing wrong: libraries that the comparison must tell from torch.

A mutant stands in for the library under test. It patches ``torch.Tensor`` only while the program runs in it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Mutant:
    """A module-like view of torch; ``patched`` is in force while a program runs in it."""

    def __init__(self, name: str, method: str, replacement: Callable[..., Any]) -> None:
        self.__name__ = name
        self.method = method
        self.replacement = replacement

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        original = getattr(torch.Tensor, self.method)
        owned = self.method in torch.Tensor.__dict__
        setattr(torch.Tensor, self.method, self.replacement)
        try:
            yield
        finally:
            if owned:
                setattr(torch.Tensor, self.method, original)
            else:
                delattr(torch.Tensor, self.method)


base = torch._C.TensorBase


def wrong_error(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    try:
        return base.mul_(self, *args, **kwargs)
    except RuntimeError as error:
        raise RuntimeError(f"mul_ failed: {error}") from None


def rounded_differently(self: torch.Tensor) -> torch.Tensor:
    result = base.exp(self)
    with torch.no_grad():
        result.data.mul_(1 + 1e-9)
    return result


MUTANTS = {
    mutant.__name__: mutant
    for mutant in (
        Mutant("tanh_ by copy_", "tanh_", lambda self: self.copy_(base.tanh(self))),
        Mutant("relu saves its input", "relu", lambda self: base.clamp(self, min=0)),
        Mutant("slices are copies", "narrow", lambda self, *args: base.narrow(self, *args).clone()),
        Mutant("mul_ renames its errors", "mul_", wrong_error),
        Mutant("retain_grad forgets", "retain_grad", lambda self: None),
        Mutant("exp is off by 1e-9", "exp", rounded_differently),
        Mutant("add_ bumps twice", "add_", lambda self, *a, **k: base.add_(base.add_(self, *a, **k), 0)),
        Mutant("hooks see doubled gradients", "register_hook", lambda self, hook: base_hook(self, hook)),
        Mutant("detach_ does nothing", "detach_", lambda self: self),
        Mutant("views start afresh", "squeeze", lambda self, *args: base.squeeze(self, *args).detach()),
    )
}

original_register_hook = torch.Tensor.register_hook


def base_hook(self: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> Any:
    return original_register_hook(self, lambda grad: hook(grad * 2))
