"""What `torch.compile` makes of a module."""

from __future__ import annotations

import copy
from operator import itemgetter
from typing import Any

from .._warnings import warn
from ..nn import Module
from ..nn.modules import module as module_file

GLOBAL_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)
global_hooks = itemgetter(*GLOBAL_HOOKS)  # of the names of the file that has them


class OptimizedModule(Module):
    """A module around another: it computes, and answers, as that one does."""

    __module__ = "retrograd._dynamo.eval_frame"

    def __init__(self, mod: Module, compiled: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training
        self.__dict__["_compiled_forward"] = compiled  # what computes; None: the module itself

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if any(global_hooks(vars(module_file))):
            warn(
                "Using `torch.compile(module)` when there are global hooks on modules (e.g., from `register_module_forward_hook`); this "
                "will cause the hooks to fire an extra time for the `OptimizedModule` created by `torch.compile(module)`. If this "
                "causes undesired behavior, please try using `module.compile()`, or use the per-module hooks instead"
            )
        run = self.__dict__.get("_compiled_forward")
        return self._orig_mod(*args, **kwargs) if run is None else run(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        """Copy the module, which is compiled anew."""
        return _made_again(copy.deepcopy(self._orig_mod, memo), self._how())

    def _how(self) -> Any:
        """Return how it is compiled; None if it runs as it is."""
        run = self.__dict__.get("_compiled_forward")
        return None if run is None else (run._compiled.fullgraph, run._compiled.options)

    def __reduce__(self) -> Any:
        return _made_again, (self._orig_mod, self._how())

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        if name == "code" and not hasattr(self._orig_mod, name):  # of what was compiled
            return getattr(self.__dict__.get("_compiled_forward"), name, "")
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = name in ("_orig_mod", "training") or "_modules" not in self.__dict__ or name in self.__dict__
        if own or "_orig_mod" not in self._modules:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return list(dict.fromkeys([*self._orig_mod.__dir__(), *super().__dir__()]))

    def __len__(self) -> int:
        return len(self._orig_mod)


class CompiledForward:
    """The `forward` of a module that compiles itself (`Module.compile`). A copy of the module gets its own."""

    def __init__(self, module: Module, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.module, self.args, self.options = module, args, options
        self._begin()

    def _begin(self) -> None:
        from .. import compiler

        self.forward: Any = type(self.module).forward  # the class may get another
        self.run = compiler.compile(self.forward.__get__(self.module), *self.args, **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if type(self.module).forward is not self.forward:
            self._begin()
        return self.run(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledForward:
        return CompiledForward(memo.get(id(self.module), self.module), self.args, self.options)

    def __reduce__(self) -> Any:
        return CompiledForward, (self.module, self.args, self.options)


def _made_again(module: Module, how: Any) -> OptimizedModule:
    from ._compiled import compiled, is_switched_off

    return OptimizedModule(module, None if how is None or is_switched_off() else compiled(module, *how))
