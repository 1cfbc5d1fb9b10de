"""What optimizers written for torch import from `torch.optim.optimizer` beside the class: questions and small conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tensor._tensor import Parameter, Tensor

_foreach_supported_types: list[type] = [Tensor, Parameter]
_params_doc = "params: the parameters to optimize, or groups of them"
_foreach_doc = "foreach: accepted; every step takes all parameters at once"
_fused_doc = "fused: accepted; every step is as quick as it can be"
_capturable_doc = "capturable: accepted; there are no graphs of CUDA's here"
_differentiable_doc = "differentiable: whether autograd follows the step"
_maximize_doc = "maximize: go up instead of down"


def _get_value(x: Any) -> Any:
    """Return a number for a tensor of one."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one number without dimensions; what is no tensor as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """Return a value as it is: nothing is compiled."""
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Put real views in the place of complex parameters and of what belongs to them."""
    from ..tensor._functions.complex_views import view_as_real

    for at, param in enumerate(params):
        if param.is_complex():
            for values in (params, *state_and_grads):
                values[at] = view_as_real(values[at])


def _default_to_fused_or_foreach(
    params: Sequence[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return torch's choice for (fused, foreach), which depends on where the parameters are."""
    if differentiable:
        return False, False
    fused = use_fused and all(type(p) in _foreach_supported_types and p.is_floating_point() for p in params)
    return fused, not fused and all(type(p) in _foreach_supported_types and p.is_cuda for p in params)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of devices whose work torch can capture."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is."""
    return lambda function: function


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    """Refuse parameters that torch's fused steps refuse."""
    if not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'] but "
            f"{p.dtype} and {p.device.type}"
        )
