"""Copying, pickling and saving of tensors that stand in graphs."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("copies_of_graphs")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def again(torch: Any, value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@program
def deepcopy_of_a_leaf(torch):
    x = leaf(torch)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    y.grad.zero_()
    return y.requires_grad, y.is_leaf, x.grad, y is x, y.data_ptr() == x.data_ptr()


@program
def deepcopy_of_a_result(torch):
    return caught(copy.deepcopy, leaf(torch) * 2)


@program
def deepcopy_of_a_detached_result(torch):
    y = copy.deepcopy((leaf(torch) * 2).detach())
    return y, y.requires_grad


@program
def deepcopy_keeps_sharing(torch):
    base = torch.ones(4, dtype=torch.float64)
    a, b = copy.deepcopy((base, base[1:]))
    b.zero_()
    return a, b


@program
def deepcopy_of_the_same_twice(torch):
    x = leaf(torch)
    a, b = copy.deepcopy([x, x])
    return a is b, a is x


@program
def deepcopy_of_a_leaf_with_hooks(torch):
    log, x = [], leaf(torch)
    x.register_hook(lambda g: log.append("hook"))
    y = copy.deepcopy(x)
    y.sum().backward()
    return log


@program
def deepcopy_of_an_inner_module(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))
            self.kept = self.w * 2

    return caught(copy.deepcopy, Net())


@program
def deepcopy_attributes(torch):
    x = leaf(torch)
    x.note = [1]
    y = copy.deepcopy(x)
    y.note.append(2)
    return x.note, y.note


@program
def copy_of_a_leaf_and_of_a_result(torch):
    x = leaf(torch)
    y = copy.copy(x)
    z = caught(copy.copy, x * 2)
    return y.requires_grad, y.is_leaf, y.data_ptr() == x.data_ptr(), z.requires_grad if hasattr(z, "grad_fn") else z


@program
def pickle_of_a_leaf(torch):
    x = leaf(torch)
    (x * 2).sum().backward()
    y = pickle.loads(pickle.dumps(x))
    return y, y.requires_grad, y.grad


@program
def pickle_of_a_result(torch):
    y = caught(lambda: pickle.loads(pickle.dumps(leaf(torch) * 2)))
    return y, getattr(y, "requires_grad", None), getattr(y, "is_leaf", None)


@program
def save_of_a_result(torch):
    y = again(torch, leaf(torch) * 2)
    return y, y.requires_grad, y.is_leaf


class Silent:
    """A hook that is written the same in every process."""

    def __repr__(self):
        return "silent"

    def __call__(self, g):
        return None


@program
def hooks_that_a_file_does_not_keep(torch):
    x, p = leaf(torch), torch.nn.Parameter(torch.ones(2))
    x.register_hook(Silent())
    p.register_hook(Silent())
    marked = leaf(torch)
    marked.register_hook(torch.utils.hooks.unserializable_hook(Silent()))
    return [warned(keep, one) for one in (x, p, marked) for keep in (pickle.dumps, lambda v: again(torch, v))]


@program
def save_of_a_parameter(torch):
    p = torch.nn.Parameter(torch.ones(2))
    p.sum().backward()
    q = again(torch, p)
    return type(q).__name__, q.requires_grad, q.grad


@program
def save_keeps_sharing(torch):
    base = torch.ones(4, dtype=torch.float64)
    a, b = again(torch, [base, base[1:]])
    b.zero_()
    return a


@program
def clone_and_graph(torch):
    x = leaf(torch)
    y = x.clone()
    y.sum().backward()
    return y.grad_fn.name(), x.grad, x.clone().detach().requires_grad


@program
def tensor_of_a_tensor(torch):
    x = leaf(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = torch.tensor(x)
    return y.requires_grad, torch.as_tensor(x) is x, warned(lambda: torch.tensor(x)), x.new_tensor([1.0]).requires_grad


@program
def parameters_in_containers(torch):
    p = torch.nn.Parameter(torch.ones(2))
    q = copy.deepcopy(p)
    return (
        type(q).__name__,
        q.requires_grad,
        copy.copy(p) is p,
        p.clone().is_leaf,
        type(p.data).__name__,
        type(p.detach()).__name__,
    )


@program
def hash_and_equality_in_sets(torch):
    x = leaf(torch)
    y = copy.deepcopy(x)
    return len({x, x, y}), x in {x: 1}, any(one is x for one in [y, x])


test_as_torch, test_recording_is_torchs = program.tests()
