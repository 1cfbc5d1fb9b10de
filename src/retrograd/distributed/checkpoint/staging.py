"""torch.distributed.checkpoint.staging: copies of a state, which are written while the program changes the state itself."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..._public import set_all
from ...autograd.grad_mode import no_grad
from ...cuda import is_available
from ...tensor import Tensor
from ...utils._pytree import tree_map
from ..tensor import DTensor


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state whose tensors are copies in host memory; of a tensor on a mesh it is this process's part."""

    def copy(value: Any) -> Any:
        if isinstance(value, DTensor):
            local = value.to_local().detach().cpu().clone()
            return DTensor.from_local(
                local, value.device_mesh, value.placements, shape=value.shape, stride=value.stride()
            )
        return value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value

    with no_grad():
        made: dict[str, Any] = tree_map(copy, state)
    return made


@runtime_checkable
class AsyncStager(Protocol):
    """Makes the copy that `async_save` writes."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` waits for the copy before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: dict[str, Any]) -> Any:
        """Return a copy of a state, or a Future of it."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Wait for the copy."""

    def close(self) -> None:
        """Give back what copies need."""


@dataclass
class StagingOptions:
    """How copies are made. Without CUDA only `use_async_staging` has an effect."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies in the caller's thread, or with `use_async_staging` in one of its own."""

    def __init__(self, config: StagingOptions | None = None) -> None:
        self._config = StagingOptions() if config is None else config
        if self._config.use_non_blocking_copy and not is_available():
            raise AssertionError("Non-blocking copy requires that the current accelerator is available.")
        self._threads = ThreadPoolExecutor(1) if self._config.use_async_staging else None

    def stage(self, state_dict: dict[str, Any], **kwargs: Any) -> dict[str, Any] | Future[dict[str, Any]]:
        """Return a copy of a state, or a Future of it."""
        return _copied(state_dict) if self._threads is None else self._threads.submit(_copied, state_dict)

    def close(self) -> None:
        """End the thread."""
        if self._threads is not None:
            self._threads.shutdown(wait=True)


class BlockingAsyncStager(AsyncStager):
    """Copies in the caller's thread."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: dict[str, Any] | None = None

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a state in host memory."""
        return _copied(state_dict)

    def synchronize_staging(self) -> None:
        """Do nothing: the copy is complete."""


set_all(globals())
