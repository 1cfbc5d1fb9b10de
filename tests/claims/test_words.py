"""What torch says when something is wrong: each sentence whole, in the library and in torch."""

from __future__ import annotations

import re
import warnings
from importlib import import_module

import pytest

RAISED = {}


def raises(kind, text):
    """Note what a program must raise: the class and the beginning of the text."""

    def add(function):
        RAISED[function.__name__] = function, kind, text
        return function

    return add


def leaf(torch, size=2):
    return torch.ones(size, requires_grad=True)


AGAIN = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


@raises("RuntimeError", AGAIN)
def backward_twice(torch):
    y = leaf(torch).exp().sum()
    y.backward()
    y.backward()


@raises("RuntimeError", AGAIN)
def a_freed_value_is_read(torch):
    y = leaf(torch).exp()
    y.sum().backward()
    return y.grad_fn._saved_result


@raises("RuntimeError", "grad can be implicitly created only for scalar outputs")
def backward_of_a_vector(torch):
    (leaf(torch) * 2).backward()


@raises("RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn")
def backward_of_a_constant(torch):
    torch.ones(2).sum().backward()


@raises(
    "RuntimeError",
    "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this is "
    "the desired behavior.",
)
def grad_to_an_unused_input(torch):
    torch.autograd.grad(leaf(torch).sum(), leaf(torch))


@raises(
    "RuntimeError",
    "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2]).",
)
def grad_outputs_of_another_shape(torch):
    x = leaf(torch)
    torch.autograd.grad(x * 2, x, torch.ones(3))


@raises("RuntimeError", "`inputs` argument to `backward()` cannot be empty.")
def no_inputs(torch):
    leaf(torch).sum().backward(inputs=[])


@raises(
    "RuntimeError",
    "one of the variables needed for gradient computation has been modified by an inplace operation: "
    "[torch.FloatTensor [2]], which is output 0 of Exp",
)
def a_saved_result_is_changed(torch):
    y = leaf(torch).exp()
    y.add_(1)
    y.sum().backward()


@raises("RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation.")
def in_place_on_a_leaf(torch):
    leaf(torch).add_(1)


@raises("RuntimeError", "a view of a leaf Variable that requires grad is being used in an in-place operation.")
def in_place_on_a_view_of_a_leaf(torch):
    leaf(torch)[0].add_(1)


@raises(
    "RuntimeError",
    "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that "
    "returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace "
    "the inplace operation by an out-of-place one.",
)
def in_place_on_one_of_several_views(torch):
    (leaf(torch) * 1).unbind()[0].add_(1)


@raises("RuntimeError", "A view was created in no_grad mode and is being modified inplace with grad mode enabled. ")
def in_place_on_a_view_made_under_no_grad(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        view = x[0]
    view.add_(1)


@raises("RuntimeError", "only Tensors of floating point and complex dtype can require gradients")
def integers_by_attribute(torch):
    torch.ones(2, dtype=torch.int64).requires_grad = True


@raises("RuntimeError", "only Tensors of floating point dtype can require gradients")
def integers_by_method(torch):
    torch.ones(2, dtype=torch.int64).requires_grad_()


@raises("RuntimeError", "Only Tensors of floating point and complex dtype can require gradients")
def integers_by_constructor(torch):
    torch.tensor([1], requires_grad=True)


@raises("RuntimeError", "you can only change requires_grad flags of leaf variables.")
def requires_grad_of_a_result(torch):
    (leaf(torch) * 2).requires_grad = False


@raises("RuntimeError", "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
def numpy_of_a_leaf(torch):
    leaf(torch).numpy()


@raises(
    "RuntimeError",
    "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please ensure that the gradient and the "
    "tensor are the same size",
)
def grad_of_another_size(torch):
    leaf(torch).grad = torch.ones(3)


@raises("RuntimeError", "cannot register a hook on a tensor that doesn't require gradient")
def hook_on_a_constant(torch):
    torch.ones(2).register_hook(lambda g: None)


@raises("RuntimeError", "post accumulate grad hooks cannot be registered on non-leaf tensors")
def post_accumulate_hook_on_a_result(torch):
    (leaf(torch) * 2).register_post_accumulate_grad_hook(lambda t: None)


@raises("RuntimeError", "Function 'SqrtBackward0' returned nan values in its 0th output.")
def nan_under_anomaly_mode(torch):
    with torch.autograd.detect_anomaly():
        (torch.zeros(2, requires_grad=True).sqrt() * 0).sum().backward()


def returning(torch, *values):
    class Returning(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return values

    return Returning


@raises("RuntimeError", "function ReturningBackward returned an incorrect number of gradients (expected 1, got 2)")
def too_many_gradients(torch):
    returning(torch, torch.ones(2), torch.ones(2)).apply(leaf(torch)).sum().backward()


@raises(
    "RuntimeError",
    "Function ReturningBackward returned an invalid gradient at index 0 - got [5] but expected shape compatible with [2]",
)
def gradient_of_another_shape(torch):
    returning(torch, torch.ones(5)).apply(leaf(torch)).sum().backward()


@raises("RuntimeError", "trying to differentiate twice a function that was marked with @once_differentiable")
def twice_through_what_is_differentiable_once(torch):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2

    x = leaf(torch)
    (g,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    g.sum().backward()


@raises(
    "RuntimeError",
    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
    "inplace must all be outputs of the Function.",
)
def dirty_and_not_returned(torch):
    class Dirty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.add_(1))
            return x.clone()

    Dirty.apply(leaf(torch) * 1)


@raises(
    "NotImplementedError",
    "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.",
)
def function_without_jvp(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        returning(torch, None).apply(forward_ad.make_dual(torch.ones(2), torch.ones(2)))


@raises(
    "RuntimeError",
    "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.",
)
def dual_without_level(torch):
    torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))


@raises(
    "RuntimeError",
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
    "tracked by autograd.",
)
def inference_tensor_saved(torch):
    with torch.inference_mode():
        x = torch.ones(2)
    leaf(torch) * x


@raises(
    "RuntimeError",
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
    "before doing inplace update.",
)
def inference_tensor_written(torch):
    with torch.inference_mode():
        x = torch.ones(2)
    x.add_(1)


@raises(
    "CheckpointError", "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
)
def recomputation_that_saves_more(torch):
    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    runs = []

    def changes(x):
        runs.append(1)
        return x.exp() if len(runs) == 1 else x + 1  # nothing to save the second time

    checkpoint(changes, leaf(torch), use_reentrant=False).sum().backward()


@raises("RuntimeError", "A saved tensor pack hook is modifying its input in place. ")
def pack_hook_that_writes(torch):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        (leaf(torch) * 1).exp() ** 2


@raises("TypeError", "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int")
def unpack_hook_that_returns_a_number(torch):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: 1, lambda n: n):
        leaf(torch).exp().sum().backward()


@raises(
    "RuntimeError",
    "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires "
    "grad.",
)
def out_with_grad(torch):
    torch.add(leaf(torch), 1, out=torch.ones(2))


@raises("GradcheckError", "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor([[")
def gradcheck_of_a_wrong_backward(torch):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(returning(torch, torch.zeros(2, dtype=torch.float64)).apply, x)


@raises(
    "RuntimeError",
    "Output 0 of the user-provided function does not require gradients. The outputs must be computed in a differentiable "
    "manner from the input when running in strict mode.",
)
def strict_jacobian_of_a_constant(torch):
    torch.autograd.functional.jacobian(lambda x: torch.ones(2), torch.ones(2), strict=True)


@raises("RuntimeError", "The output of the user-provided function is independent of input 0.")
def strict_vjp_of_what_does_not_depend(torch):
    functional = torch.autograd.functional
    functional.vjp(lambda x, y: y * 2, (torch.ones(2), torch.ones(2)), torch.ones(2), strict=True)


@raises(
    "TypeError",
    "The outputs of the user-provided function given to jacobian must be either a Tensor or a tuple of Tensors but the "
    "given outputs of the user-provided function has type <class 'int'>.",
)
def jacobian_of_a_number(torch):
    torch.autograd.functional.jacobian(lambda x: 1, torch.ones(2))


@raises(
    "RuntimeError",
    "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
    "static forward method.",
)
def forward_that_is_not_static(torch):
    class Legacy(torch.autograd.Function):
        def forward(self, x):
            return x

    Legacy()(leaf(torch))


@pytest.mark.parametrize("name", RAISED)
def test_raised(torch, name):
    function, kind, text = RAISED[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception, match=re.escape(text)) as caught:
            function(torch)
    assert caught.type.__name__ == kind
    assert str(caught.value).startswith(text)


def test_the_gradient_of_a_result_warns(torch):
    with pytest.warns(
        UserWarning, match=r"^The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed\."
    ):
        _ = (leaf(torch) * 2).grad


def test_create_graph_in_backward_warns(torch):
    x = leaf(torch)
    words = (
        r"^Using backward\(\) with create_graph=True will create a reference cycle between the parameter and its gradient "
        r"which can cause a memory leak\."
    )
    torch.set_warn_always(True)  # torch says it once a process
    try:
        with pytest.warns(UserWarning, match=words):
            (x**3).sum().backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
    x.grad = None  # breaks the cycle


def test_a_failure_under_anomaly_mode_warns_with_the_forward_line(torch):
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("no")

    words = r"^Error detected in FailingBackward\. Traceback of forward call that caused the error:"
    with pytest.warns(UserWarning, match=r"^Anomaly Detection has been enabled"):
        watching = torch.autograd.detect_anomaly()
    with pytest.warns(UserWarning, match=words), pytest.raises(ValueError, match="no"), watching:
        Failing.apply(leaf(torch)).sum().backward()


def test_grad_modes_on_a_class_warn(torch):
    with pytest.warns(
        FutureWarning, match=r"^Decorating classes is deprecated and will be disabled in future versions"
    ):

        @torch.no_grad()
        class Plain:
            pass

    assert isinstance(Plain(), object)
