"""Modules whose shapes become known at their first call."""

from __future__ import annotations

from typing import Any

from ..._modes import using
from ..parameter import is_lazy


class LazyModuleMixin:
    """Put before a module's class: its parameters take their shapes from the first input, then it becomes `cls_to_become`.

    A class built on it creates `UninitializedParameter`s and defines `initialize_parameters`, which materialises them.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The function and not the bound method, so that copies of the module load into themselves.
        self._load_hook = self._register_load_state_dict_pre_hook(type(self)._lazy_load_hook, with_module=True)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _members(self: Any) -> dict[str, Any]:
        return {name: value for name, value in (self._parameters | self._buffers).items() if value is not None}

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._members().items():
            if name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Give parameters the shapes of those that are about to be loaded."""
        for name, value in self._members().items():
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(value) and not is_lazy(given):
                with using(grad=False):
                    value.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialise the parameters as the arguments of the first call ask for."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Tell whether a parameter or buffer has no shape yet."""
        return any(is_lazy(value) for value in self._members().values())

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for handle in ("_initialize_hook", "_load_hook"):
            getattr(module, handle).remove()
            delattr(module, handle)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly "
            "initialize the modules"
        )


__all__: list[str] = []
