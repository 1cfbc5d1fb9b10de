"""The messages users read when something is wrong: torch's sentence, then where it happened and how to fix it."""

from __future__ import annotations

from typing import Any

from ._dtypes import ALL_DTYPES
from ._places import definition

_TYPE_NAMES = {each.name: f"torch.{each._scalar_name}Tensor" for each in ALL_DTYPES}


class OutOfMemoryError(RuntimeError):
    """torch's error for a device without enough memory; CuPy raises its own."""

    __module__ = "retrograd"


class AcceleratorError(RuntimeError):
    """torch's error for work that a device could not do."""

    __module__ = "retrograd"


ONLY_FLOATS = (
    "Only Tensors of floating point and complex dtype can require gradients\nHint: convert it first: x.float(), or dtype=torch.float32 "
    "where it is made."
)


def sizes(shape: Any) -> str:
    """Write a shape as torch does in messages: [2, 3]."""
    return "[" + ", ".join(str(n) for n in shape) + "]"


def freed(place: Any) -> RuntimeError:
    """Build the error for a second backward, or for reading saved values after the first."""
    text = (
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward."
    )
    if place is not None:
        text += (
            f"\nThe graph was freed by the backward called here:\n{place}\n"
            "Hint: what a loop carries from one step to the next, such as a hidden state, is cut off by detach()."
        )
    return RuntimeError(text)


def all_of(parameters: Any) -> list[Any]:
    """Return parameters as a list; a module in their place is refused in Python's words."""
    if not hasattr(parameters, "__iter__") and hasattr(parameters, "parameters"):
        raise TypeError(
            f"'{type(parameters).__name__}' object is not iterable\nHint: give its parameters: {GIVE_PARAMETERS}"
        )
    return list(parameters)


GIVE_PARAMETERS = "model.parameters()."


def no_grad_fn(i: int, grad: bool, why: str) -> RuntimeError:
    """Build the error for an output of backward that requires no grad; `grad`: whether gradients are switched on."""
    text = f"element {i} of tensors does not require grad and does not have a grad_fn\nHint: "
    return RuntimeError(text + ("" if grad else "gradients are switched off here; ") + why)


def not_used(i: int, why: str) -> RuntimeError:
    """Build the error for an input of `grad` to which no gradient came."""
    return RuntimeError(
        f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if "
        f"this is the desired behavior.\nHint: {why}"
    )


def of_backward(error: RuntimeError, place: str | None, backward: Any) -> RuntimeError:
    """Add to an error about what a custom backward returned where its Function was applied and where it is defined."""
    text = (
        f"{error}\nHint: return one gradient for each argument of apply, in the shape of the argument and real if "
        "the argument is real; return None for an argument that is not a tensor."
    )
    if place is not None:
        text += f" The Function was applied here:\n{place}"
    if (defined := definition(backward)) is not None:
        text += f"\nIts backward is defined here:\n{defined}"
    return RuntimeError(text)


def of_hook(text: str, hook: Any, must: str) -> RuntimeError:
    """Build an error about what a hook returned, with what it must do and where it is defined."""
    text += f"\nHint: {must}."
    if (defined := definition(hook)) is not None:
        text += f" It is defined here:\n{defined}"
    return RuntimeError(text)


def no_setup_context(function: Any) -> RuntimeError:
    """Build the error for a custom Function under a transform whose forward takes ctx."""
    text = (
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
        "the setup_context staticmethod. For more details, please see "
        "https://pytorch.org/docs/main/notes/extending.func.html\nHint: take ctx out of the arguments of "
        f"{function.__name__}.forward, and save what it saves in setup_context(ctx, inputs, output)."
    )
    if (defined := definition(function.forward)) is not None:
        text += f" It is defined here:\n{defined}"
    return RuntimeError(text)


def overwritten(value: Any, producer: Any, storage: Any, version: int, saved_at: str | None) -> RuntimeError:
    """Build the error for a saved value that was changed in place."""
    name = _TYPE_NAMES.get(value.dtype.name if hasattr(value, "dtype") else "", "torch.Tensor")
    if name == "torch.BoolTensor":
        name = "CPUBoolType"  # torch's own slip
    shape = getattr(value, "shape", ())
    text = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{name} {sizes(shape)}]"
    )
    owner, slot = _owner(producer)
    if owner is not None:
        text += f", which is output {slot} of {owner},"
    text += f" is at version {storage.version}; expected version {version} instead."
    if saved_at is not None and storage.place is not None:
        where = str(storage.place)
        text += (
            " Hint: the value was saved for the backward of this line:\n"
            f"{saved_at}\nand overwritten by this one:\n{where}\n{AFTER_STEP if '.step(' in where else NEW_VALUE}"
        )
    else:
        text += (
            " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True)."
        )
    return RuntimeError(text)


NEW_VALUE = "Replace the in-place operation (x = x + 1 instead of x.add_(1)), or save a clone()."
AFTER_STEP = "Call step() after the last backward that needs the old values, or compute this loss anew after it."


def _owner(producer: Any) -> tuple[str | None, int]:
    if producer is None:
        return None, 0
    if hasattr(producer, "node"):
        return short_name(producer.node.name()), producer.index
    if hasattr(producer, "pull_back"):
        return short_name(producer.name()), 0
    return None, 0


def short_name(name: str) -> str:
    """Write a node's name as torch does in messages: Relu for ReluBackward0, Max1 for MaxBackward1, Made for MadeBackward."""
    stem, found, number = name.rpartition("Backward")
    return stem + ("" if number == "0" else number) if found and (number.isdigit() or not number) else name


def not_of_tensors(name: str, given: Any) -> TypeError:
    """Build Python's error for an operator of tensors that was called, by its name, on something else."""
    return TypeError(
        f"descriptor '{name}' for 'torch._C.TensorBase' objects doesn't apply to a '{type(given).__name__}' object"
    )


def broadcast_error(a: Any, b: Any) -> RuntimeError:
    """Build torch's error for two shapes that do not broadcast."""
    offset_a, offset_b = len(a), len(b)
    rank = max(len(a), len(b))
    for i in range(1, rank + 1):
        size_a = a[offset_a - i] if i <= offset_a else 1
        size_b = b[offset_b - i] if i <= offset_b else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            return RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) at non-singleton "
                f"dimension {rank - i}\nHint: the shapes are {sizes(a)} and {sizes(b)}."
            )
    return RuntimeError(f"shapes {sizes(a)} and {sizes(b)} do not broadcast")


def wrap_dim(dim: int, ndim: int) -> int:
    """Make a dimension non-negative, with torch's error if it is out of range."""
    limit = ndim or 1
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim + limit if dim < 0 else dim


def refuse_bool(arrays: Any) -> None:
    """Raise torch's errors for subtraction with bool tensors."""
    bools = [type(a) is bool or (hasattr(a, "dtype") and a.dtype.kind == "b") for a in arrays]
    if not any(bools):
        return
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    raise RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead."
    )
