"""torch.distributed.tensor.parallel.api: a module's parts divided by a plan."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from ...._warnings import warn
from ...device_mesh import _mesh_resources
from .style import ParallelStyle


def parallelize_module(
    module: Any, device_mesh: Any = None, parallelize_plan: Any = None, *, src_data_rank: int | None = 0
) -> Any:
    """Divide a module, or those of its parts that a plan names, among the processes of a mesh of one dimension.

    Args:
        module: the module, which is changed in place
        device_mesh: the mesh; that of the `with` block if it is not given
        parallelize_plan: a style, or styles by the names of parts, in which `*` stands for any name
        src_data_rank: the process whose parameters are taken; None: each takes its own
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this parallelize_module "
            "call will do nothing."
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        if mesh.ndim != 1:
            raise ValueError(
                f"parallelize_module needs a mesh of one dimension, but got {mesh}\nHint: a part of it, mesh['tp']."
            )
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        first, _, rest = path.partition(".")
        parts = [one for name, one in module.named_children() if fnmatch(name, first)]
        if not parts:
            warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
                f"{module}, skipping this plan entry."
            )
        for one in parts:
            parallelize_module(one, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
    return module


__all__ = ["parallelize_module"]
