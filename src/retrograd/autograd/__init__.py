"""torch.autograd: backward, grad, custom functions, modes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _dtypes, _errors, overrides
from .._absent import finder
from .._core.primitive import ones_beside
from .._graph.cuts import note_cut
from .._graph.unpacked import SavedTensor
from .._modes import current_mode, using
from .._places import Place, user_frame, user_place
from .._size import Size
from .._tracebacks import guarded, hide
from .._warnings import warn
from ..tensor import _base
from ..tensor._aliasing.views import Nowhere
from ..tensor._base import wrap
from ..tensor._functions.creation import zeros_like
from ..tensor._object.formats import preserve_format
from ..tensor._recording import fused as _fused
from ..tensor._recording.record import mark_inference
from ..tensor._tensor import Tensor
from . import engine, forward_ad, grad_mode, graph
from .anomaly_mode import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from .function import Function
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .graph import GradientEdge, edge_from
from .variable import Variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "explain",
    "forward_ad",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def make_seeds(outputs: tuple[Any, ...], seeds: tuple[Any, ...], batched: bool) -> list[Any]:
    """Check given gradients, and make ones for scalars without."""
    made = []
    for i, (out, seed) in enumerate(zip(outputs, seeds, strict=True)):
        is_edge = isinstance(out, GradientEdge)
        array = out.known_output() if is_edge else out._array
        if array is None:
            made.append(seed if seed is not None else wrap(np.ones((), np.float32)))
            continue
        if seed is None:
            if is_edge or out._edge is not None:
                if array.size != 1:
                    raise RuntimeError(
                        "grad can be implicitly created only for scalar outputs\n"
                        f"Hint: outputs[{i}] has shape {tuple(array.shape)}; reduce it first, e.g. .sum(), or pass its "
                        "gradient."
                    )
                if array.dtype.kind not in "fV":
                    raise RuntimeError(
                        "grad can be implicitly created only for real scalar outputs but got "
                        f"{_dtypes.from_numpy(array.dtype)}"
                    )
                if is_edge:
                    made.append(wrap(array.ones()))
                elif current_mode().dispatch_modes or type(out) in _base.dispatch_types:
                    with using(grad=False):
                        made.append(
                            sys.modules[__package__.partition(".")[0]].ones_like(out, memory_format=_preserved())
                        )
                else:
                    made.append(wrap(array.dtype.type(1) if isinstance(array, np.generic) else ones_beside(array)))
                if current_mode().inference:
                    mark_inference(made[-1])
            else:
                made.append(None)
            continue
        if not isinstance(seed, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(seed).__name__}")
        shape = tuple(seed._array.shape)
        if batched:
            shape = shape[1:] if shape else cast(Any, seed)[0].shape  # which raises
        if shape != tuple(array.shape):
            if batched and is_edge:
                raise RuntimeError("Batched grads are not supported with GradientEdge")
            if batched:
                raise RuntimeError(
                    f"If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                    f"dimension. The sizes of the remaining dimensions are expected to match the shape of "
                    f"corresponding output, but a mismatch was detected: grad_output[{i}] has a shape of "
                    f"{Size(shape[1:])} and output[{i}] has a shape of {out.shape}. If you only want some tensors in "
                    f"`grad_output` to be considered batched, consider using vmap.\nHint: each of the {len(seed)} gradients "
                    f"has shape {tuple(shape)}."  # torch leaves out one dimension too many
                )
            # torch looks the tensors up by ==, and may stumble over that
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{seeds.index(seed)}] has a shape of {seed.shape} and "
                f"output[{outputs.index(out)}] has a shape of {Size(array.shape)}."
            )
        complex_out, complex_seed = array.dtype.kind == "c", seed._array.dtype.kind == "c"
        if complex_out != complex_seed:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {seed.dtype} and output[{i}] has a dtype of "
                f"{_dtypes.from_numpy(array.dtype)}."
            )
        made.append(seed if seed._array.dtype == array.dtype else seed.to(_dtypes.from_numpy(array.dtype)))
    return made


def _preserved() -> Any:
    return preserve_format


def _roots(outputs: tuple[Any, ...], seeds: list[Any]) -> tuple[list[Any], list[Any]]:
    roots = []
    for i, out in enumerate(outputs):
        edge = edge_from(out)
        if edge is None or type(edge) is Nowhere:
            raise _errors.no_grad_fn(i, current_mode().grad, _why_none(out))
        shape = None if not isinstance(out, Tensor) or out._extra is None else out._extra.node_shape
        if shape is not None and shape != tuple(seeds[i].shape):
            if not _expands(shape, tuple(seeds[i].shape)):
                raise RuntimeError(
                    f"invalid gradient at index {i} - got {list(seeds[i].shape)} but expected shape compatible with "
                    f"{list(shape)}"
                )
            seeds[i] = seeds[i].reshape(shape)
        roots.append(edge)
    return roots, seeds


def _why_none(output: Any) -> str:
    """Say for an error why a tensor requires no grad."""
    from . import _explain

    try:
        return _explain.why_none(output, user_frame(sys._getframe(1)))
    except Exception:  # what explains an error must not replace it
        return _EXPLAIN.format("input")


def _why_not(outputs: tuple[Any, ...], inputs: tuple[Any, ...], i: int) -> str:
    """Say for an error why no gradient came from the outputs to an input."""
    from . import _explain

    try:
        (output,) = outputs
        reason, cuts = _explain.why_not(output, _base.edge_of(inputs[i]), user_frame(sys._getframe(1)))
        return repr(_explain.Explanation(False, [], cuts, reason))
    except Exception:  # several outputs, an edge; and what explains an error must not replace it
        return _EXPLAIN.format(f"inputs[{i}]")


_EXPLAIN = "torch.autograd.explain(output, {}) names the line at which a value left the graph."


def _expands(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Tell whether a shape can be expanded to a wider one."""
    lead = len(wide) - len(shape)
    return lead >= 0 and all(n in (1, m) for n, m in zip(shape, wide[lead:], strict=True))


def backward_from(
    tensors: tuple[Any, ...],
    gradients: tuple[Any, ...],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Any,
) -> None:
    """Run backward."""
    if current_mode().transforms and any(t.kind != "dual_level" for t in current_mode().transforms):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    seeds = make_seeds(tensors, gradients, False)
    roots, seeds = _roots(tensors, seeds)
    keep = create_graph if retain_graph is None else retain_graph
    capture = None
    if inputs is not None:
        for one in inputs:
            if isinstance(one, Tensor):
                one.retain_grad()
        capture = engine.Capture([edge_from(one) for one in inputs], accumulate=True)
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak."
        )
    frame = user_frame(sys._getframe(1))
    place = Place(frame.f_code, frame.f_lasti)
    engine.run_backward(roots, seeds, graph=create_graph, keep=keep, capture=capture, place=place)


_base.backward_from = backward_from


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the sum of gradients of tensors with respect to the graph's leaves.

    Args:
        tensors: a tensor, or several
        grad_tensors: the gradients that arrive at them; 1 for a tensor with one element if it is not given
        retain_graph: keep the graph for a second walk
        create_graph: record the walk, so that gradients can be differentiated again
        inputs: the leaves that get gradients; all if it is not given

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward((x**2).sum())
        >>> x.grad
        tensor([2., 4.])
    """
    try:
        if overrides.may_take_over():
            of = (tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tuple(tensors)
            if overrides.has_torch_function(of):
                more = {"grad_tensors": grad_tensors, "retain_graph": retain_graph, "create_graph": create_graph}
                overrides.handle_torch_function(backward, of, tensors, inputs=inputs, **more)
                return
        if grad_variables is not None:
            warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
            if grad_tensors is not None:
                raise RuntimeError(
                    "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                    "only use `grad_tensors`."
                )
            grad_tensors = grad_variables
        outputs = (tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tuple(tensors)
        seeds = _tuple_of(grad_tensors, len(outputs))
        if len(seeds) != len(outputs):
            raise RuntimeError(f"got {len(outputs)} tensors and {len(seeds)} gradients")
        backward_from(outputs, seeds, retain_graph, create_graph, inputs)
    except Exception as error:
        hide(error)
        raise


def _tuple_of(values: Any, length: int) -> tuple[Any, ...]:
    if values is None:
        return (None,) * length
    return (values,) if isinstance(values, Tensor) else tuple(values)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Compute and return the sum of gradients of outputs with respect to inputs.

    Args:
        outputs: a tensor, or several
        inputs: the tensors whose gradients are wanted; they need not be leaves
        grad_outputs: the gradients that arrive at the outputs; 1 for an output with one element if it is not given
        retain_graph: keep the graph for a second walk
        create_graph: record the walk, so that gradients can be differentiated again
        only_inputs: True, as in torch
        allow_unused: return None for an input that was not used, instead of an error
        is_grads_batched: the first dimension of `grad_outputs` is a batch
        materialize_grads: return zeros for such an input

    Returns:
        A gradient for each input; nothing is added to `.grad`.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.grad((x**3).sum(), x)
        (tensor([ 3., 12.]),)
    """
    try:
        if materialize_grads and allow_unused is False:
            raise ValueError(
                "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
            )
        if allow_unused is None:
            allow_unused = materialize_grads
        outputs = (outputs,) if isinstance(outputs, (Tensor, GradientEdge)) else tuple(outputs)
        inputs = (inputs,) if isinstance(inputs, (Tensor, GradientEdge)) else tuple(inputs)
        if not only_inputs:
            warn(
                "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
                "parts of the graph, please use torch.autograd.backward.",
                FutureWarning,
            )
        seeds = _tuple_of(grad_outputs, len(outputs))
        if len(seeds) != len(outputs):
            raise RuntimeError(f"got {len(outputs)} tensors and {len(seeds)} gradients")
        if is_grads_batched:
            return _batched_grad(outputs, inputs, seeds, retain_graph, create_graph, allow_unused, materialize_grads)
        made = make_seeds(outputs, seeds, False)
        roots, made = _roots(outputs, made)
        keep = create_graph if retain_graph is None else retain_graph
        found = gradients(
            roots, made, inputs, create_graph, keep, allow_unused, materialize_grads, user_place(2), outputs
        )
        if not create_graph and (first := next((one for one in found if one is not None), None)) is not None:
            note_cut("grad() without create_graph=True", roots[0], roots[0], first)  # a leaf is its own edge
        return found
    except Exception as error:
        hide(error)
        raise


def gradients(
    roots: list[Any],
    seeds: list[Any],
    inputs: tuple[Any, ...],
    create_graph: bool,
    keep: bool,
    allow_unused: bool,
    materialize: bool,
    place: Any,
    outputs: tuple[Any, ...] = (),
) -> tuple[Any, ...]:
    """Return the gradients of roots with respect to tensors; errors explain paths from `outputs`."""
    edges = []
    for i, one in enumerate(inputs):
        edge = edge_from(one)
        if edge is None:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad\nHint: it is inputs[{i}]; call requires_grad_() "
                "on it before the outputs are computed."
            )
        edges.append(edge)
    if not edges:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    capture = engine.Capture(edges)
    engine.run_backward(roots, seeds, graph=create_graph, keep=keep, capture=capture, place=place)
    results = []
    for i, result in enumerate(capture.results()):
        if result is None and not allow_unused:
            raise _errors.not_used(i, _why_not(outputs, inputs, i))
        results.append(result)
    return _materialized(inputs, results, create_graph) if materialize else tuple(results)


_fused.install(grad)


def _batched_grad(
    outputs: Any, inputs: Any, seeds: Any, retain_graph: Any, create_graph: bool, allow_unused: bool, materialize: bool
) -> tuple[Any, ...]:
    from ..func._vmap import vmap

    made = make_seeds(outputs, seeds, True)
    keep = create_graph if retain_graph is None else retain_graph
    place = user_place(3)
    for seed in made:
        what = "vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for"
        if seed is None:
            raise ValueError(
                f"{what} an input but the input is of type {type(seed)}. We cannot vmap over non-Tensor arguments, please "
                "use None as the respective in_dim"
            )
        if not seed._array.ndim:
            raise ValueError(
                f"{what} some input, but that input is a Tensor of dimensionality 0 so expected in_dim to satisfy "
                "0 <= in_dim < 0."
            )

    def vjp(*samples: Any) -> Any:
        roots, given = _roots(outputs, list(samples))
        return gradients(roots, given, inputs, create_graph, keep, allow_unused, False, place)

    results = vmap(vjp, randomness="error", _allow_none=True)(*made)
    return _materialized(inputs, results, create_graph) if materialize else tuple(results)


def _materialized(inputs: Any, results: Any, create_graph: bool) -> tuple[Any, ...]:
    """Put zeros where there is no gradient."""
    for one, result in zip(inputs, results, strict=True):
        if result is None and isinstance(one, GradientEdge):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return tuple(
        zeros_like(one, requires_grad=create_graph) if result is None else result
        for one, result in zip(inputs, results, strict=True)
    )


_ELSEWHERE = {
    "explain": "_explain",
    "NestedIOFunction": "_nested_io",
    "_force_original_view_tracking": "grad_mode",
    "_unsafe_preserve_version_counter": "grad_mode",
    "is_multithreading_enabled": "_running",
    "is_view_replay_enabled": "_running",
    "_profiler_enabled": "profiler",
    "kineto_available": "profiler",
}


if TYPE_CHECKING:
    from .gradcheck import gradcheck, gradgradcheck


@guarded
def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    import importlib

    if name == "SavedTensor":
        return SavedTensor
    if name in ("functional", "profiler", "variable"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    if name in ("gradcheck", "gradgradcheck"):
        module = importlib.import_module(f"{__name__}.gradcheck")
        globals()["gradcheck"] = module.gradcheck  # the import put the module there
        return getattr(module, name)
    return finder("torch.autograd", by_torchs_name=True)(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
