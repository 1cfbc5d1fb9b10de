"""torch.nn.parallel.parallel_apply: several modules, each on its device, at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from ...accelerator import current_device_index
from ...cuda import device as on_device
from ...tensor import Tensor


def get_a_var(obj: Any) -> Any:
    """Return a tensor in nested values, or None."""
    if isinstance(obj, Tensor):
        return obj
    values = obj.values() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    return next((found for one in values if (found := get_a_var(one)) is not None), None)


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Sequence[Any] | None = None
) -> list[Any]:
    """Call each module with its arguments, in threads, and return what each gives; errors are raised as they are."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    current_device_index()  # says if there is no device
    options = kwargs_tup or [{}] * len(modules)

    def work(number: int) -> Any:
        given = inputs[number] if isinstance(inputs[number], (tuple, list)) else (inputs[number],)
        found = get_a_var(given) if devices is None else None
        place = found.get_device() if found is not None else devices[number] if devices is not None else None
        if place is None:
            return modules[number](*given, **options[number])
        with on_device(place):
            return modules[number](*given, **options[number])

    if len(modules) == 1:
        return [work(0)]
    with ThreadPoolExecutor(len(modules)) as pool:
        running = [pool.submit(copy_context().run, work, number) for number in range(len(modules))]
        return [one.result() for one in running]


__all__ = ["get_a_var", "parallel_apply"]
