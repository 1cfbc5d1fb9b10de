"""What a sharded module does around forward and backward.

Note [A sharded step]
Rule 1. Before a module's forward its parameters are gathered, after it they are freed (unless it is the root, whose backward comes next).
Rule 2. When the gradient of one of its outputs arrives, they are gathered again, and the gathering of the module before it starts.
Rule 3. When the gradients of all its parameters have come, they are reduced to the shards, while backward goes on. At most two modules'
        gradients are under way. When those of its inputs have come, the parameters are freed; at the end of backward at the latest.
Rule 4. Small parameters of a module travel together, in one gathering and one reduction; large ones by themselves, without copies.
Rule 5. All processes must run the same modules in the same order: gatherings and reductions are paired by their order.
"""

from __future__ import annotations

from typing import Any

from ...autograd import Function
from ...autograd.engine import queue_callback
from ...autograd.grad_mode import is_grad_enabled
from ...tensor import Tensor
from ...utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._parameters import ShardedParameter, start_gathering, start_reducing

UNDER_WAY = 2  # modules whose gradients are being reduced: more take more memory, fewer wait


class Tree:
    """What the sharded modules of one tree share: the order of their forwards, and what is under way in backward."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.order: list[State] = []  # of forwards, for which a backward may come
        self.reducing: list[tuple[State, float, list[Any]]] = []
        self.is_last_backward = True
        self.end_queued = False

    def backward_began(self) -> None:
        """Ask for the end of a backward once."""
        if not self.end_queued:
            self.end_queued = True
            queue_callback(self._backward_ended)

    def _backward_ended(self) -> None:
        self.end_queued = False
        for state in self.states:
            state.reduce()
            state.finish_backward()
        if self.is_last_backward:
            self.finish_reducing(0)
            self.order.clear()

    def finish_reducing(self, left: int) -> None:
        """Wait for the oldest reductions, until so many modules' are left."""
        while len(self.reducing) > left:
            state, factor, started = self.reducing.pop(0)
            for work, _, shares in started:
                if work is not None:
                    work.wait()
                for parameter, share in shares:  # which is a gradient's own memory if it came alone
                    own = share if len(shares) == 1 else share.clone()
                    parameter.finish_reducing(own, factor, state.all_reduces)


class State:
    """A sharded module's choices, its parameters, and whether they are whole now."""

    def __init__(self, modules: list[Any], parameters: list[ShardedParameter], policy: Any, mesh: Any) -> None:
        self.modules, self.parameters, self.policy, self.mesh = modules, parameters, policy, mesh
        self.tree: Tree | None = None
        self.frees_after_forward: bool | None = None  # None: unless it is the root
        self.frees_after_backward = self.gathers_in_backward = True
        self.reduces = self.all_reduces = True
        self.divisor: float | None = None
        self.is_whole = False
        self.works: list[Any] | None = None  # of a gathering that has started
        self.arrived: set[int] = set()
        self.next_in_forward: list[State] = []
        self.next_in_backward: list[State] | None = None
        self.left: set[Any] = set()  # of several modules that are gathered together: whose forward is still to come
        self._watch_saving()

    def _watch_saving(self) -> None:
        """Show the shards before a state is read or loaded; take those over that `load_state_dict(assign=True)` puts in their place."""
        for module in self.modules:
            module.register_state_dict_pre_hook(lambda *_: self.free())
            module.register_load_state_dict_pre_hook(self._before_loading)
            module.register_load_state_dict_post_hook(lambda *_: self.forget_wholes())

    def _before_loading(self, module: Any, state: dict[str, Any], prefix: str, *others: Any) -> None:
        """Show the shards, and cut the whole parameters that are given."""
        from ..tensor._dtensor import DTensor, distribute_tensor

        self.free()
        own = {id(one.sharded): one for one in self.parameters}
        for name, one in module.named_parameters(remove_duplicate=False):  # a tied one has several names
            parameter = own.get(id(one))
            key = prefix + name
            given = state.get(key)
            if parameter is None or not isinstance(given, Tensor):
                continue
            if not isinstance(given, DTensor) and given.shape == one.shape:
                state[key] = distribute_tensor(given, one.device_mesh, one.placements, src_data_rank=None)

    # ---- whole and in parts ----
    def start_gathering(self) -> None:
        """Start to make the parameters whole, unless they are or will be."""
        if self.is_whole or self.works is not None:
            return
        if any(one.sharded.is_meta for one in self.parameters):
            raise RuntimeError(
                "FSDP parameters should be materialized from meta device before training, but some are still on it\n"
                "Hint: module.to_empty(device='cpu'), then give the parameters their values."
            )
        self.works = start_gathering(self.parameters, self.policy.param_dtype)

    def gather(self) -> None:
        """Make the parameters whole."""
        self.start_gathering()
        self.finish_gathering()

    def finish_gathering(self) -> None:
        """Wait for a gathering that has started, and show the whole parameters."""
        if self.works is None:
            return
        works, self.works = self.works, None
        for work in works:
            if work is not None:
                work.wait()
        for one in self.parameters:
            one.show_whole()
            self._hear_gradients(one)
        self.is_whole = True

    def free(self) -> None:
        """Show the shards, and give the memory of the whole parameters back."""
        if self.works is not None:
            self.finish_gathering()
        if self.is_whole:
            for one in self.parameters:
                one.show_shard()
            self.is_whole = False

    def keep_wholes(self) -> None:
        """Take over into the shards what was written into the whole parameters."""
        for one in self.parameters:
            one.take_over_whole()

    def forget_wholes(self) -> None:
        """Take over what the modules hold now instead of the shards."""
        for one in self.parameters:
            one.forget_whole()

    # ---- forward ----
    def before_forward(self, module: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Make the parameters whole; bring inputs to their dtype, and notice when their gradients have come."""
        self._find_root(module)
        self.left = self.left or set(self.modules)
        self.gather()
        for state in self.next_in_forward:
            state.start_gathering()
        dtype = self.policy.param_dtype
        if dtype is not None and self.policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), dtype)
        if not is_grad_enabled():
            return args, kwargs
        values, structure = tree_flatten((args, kwargs))
        heard = [one for one in values if isinstance(one, Tensor) and one.requires_grad]
        if heard:
            passed = iter(InputsDone.apply(self, *heard))
            values = [next(passed) if isinstance(one, Tensor) and one.requires_grad else one for one in values]
        return tree_unflatten(values, structure)  # type: ignore[no-any-return]

    def after_forward(self, module: Any, args: Any, output: Any) -> Any:
        """Free the parameters, and hear when the gradients of the outputs come."""
        self.left.discard(module)
        tree = self.tree
        assert tree is not None, "forward has begun"
        is_root = self is tree.states[0]
        frees = not is_root if self.frees_after_forward is None else self.frees_after_forward
        if frees and not self.left:
            self.free()
        if self.policy.output_dtype is not None:
            output = _cast(output, self.policy.output_dtype)
        heard = [one for one in tree_flatten(output)[0] if isinstance(one, Tensor) and one.requires_grad]
        if heard and not self.left:
            tree.order.append(self)
        for one in heard:
            one.register_hook(self._output_gradient_came)
        return output

    def _find_root(self, module: Any) -> None:
        if self.tree is None or (self is self.tree.states[0] and not self.tree.end_queued):
            inner = [one._get_fsdp_state() for one in module.modules() if hasattr(one, "_get_fsdp_state")]
            if self.tree is None or any(one.tree is not self.tree for one in inner):
                made = self.tree or Tree()
                states = list(dict.fromkeys([self, *inner]))
                _need_own_parameters(states, module)
                made.states = states
                for one in made.states:
                    one.tree = made
            if self.tree is not None and not self.tree.reducing:
                self.tree.order.clear()

    # ---- backward ----
    def _output_gradient_came(self, grad: Any) -> None:
        tree = self.tree
        assert tree is not None, "forward has run"
        tree.backward_began()
        if self.gathers_in_backward:
            self.gather()
        for state in self._before_this(tree):
            if state.gathers_in_backward:
                state.start_gathering()

    def _before_this(self, tree: Tree) -> list[State]:
        """Return the modules whose backward comes next."""
        if self.next_in_backward is not None:
            return self.next_in_backward
        at = max((at for at, one in enumerate(tree.order) if one is self), default=0)
        return [tree.order[at - 1]] if at > 0 else []

    def _hear_gradients(self, parameter: ShardedParameter) -> None:
        """Hear when the gradient of a whole parameter has come, from its first gathering on."""
        whole = parameter.whole
        if not whole.requires_grad or getattr(whole, "_fsdp_is_heard", False):
            return
        whole._fsdp_is_heard = True
        number = id(parameter)

        def came(_: Any) -> None:
            assert self.tree is not None, "forward has run"
            self.tree.backward_began()
            self.arrived.add(number)
            if all(id(one) in self.arrived for one in self.parameters if one.sharded.requires_grad):
                self.reduce()

        whole.register_post_accumulate_grad_hook(came)

    def reduce(self) -> None:
        """Start to reduce the gradients that have come."""
        arrived, self.arrived = self.arrived, set()
        if not self.reduces or not arrived:
            return
        assert self.tree is not None, "forward has run"
        found = [one for one in self.parameters if one.whole is not None and one.whole.grad is not None]
        count = self.mesh.size()
        factor = 1.0 / (count if self.divisor is None else self.divisor)
        self.tree.reducing.append((self, factor, start_reducing(found, self.policy.reduce_dtype)))
        self.tree.finish_reducing(UNDER_WAY)

    def inputs_done(self) -> None:
        """Free the parameters: the gradients of a module's inputs are the last for which they are needed."""
        if self.frees_after_backward:
            self.free()

    def finish_backward(self) -> None:
        """Free the parameters at the end of a backward, also where it did not need them."""
        self.left.clear()
        if self.frees_after_backward:
            self.free()

    def reset(self) -> None:
        """Forget a forward or backward that an error has ended."""
        self.arrived.clear()
        self.free()
        self.left.clear()
        for one in self.parameters:
            one.unreduced = None
            if one.whole is not None:
                one.whole.grad = None


class InputsDone(Function):
    """The inputs of a module, unchanged: its backward runs when the gradients of all of them have come."""

    @staticmethod
    def forward(ctx: Any, state: State, *inputs: Any) -> Any:
        ctx.state = state
        return inputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.inputs_done()
        return None, *grads


def _need_own_parameters(states: list[State], root: Any) -> None:
    """Refuse a parameter that two modules have cut: the parts would be trained apart."""
    seen: set[int] = set()
    for parameter in (one for state in states for one in state.parameters):
        if parameter.origin in seen:
            holder, name = parameter.holders[0]
            inside = next(path for path, module in root.named_modules() if module is holder)
            raise ValueError(
                f"Parameter '{inside}.{name}' is shared with a parameter already managed by another FSDP group. For shared/tied "
                "parameters, use fully_shard([module_a, module_b]) to place them in the same FSDP group."
            )
        seen.add(parameter.origin)


def _cast(values: Any, dtype: Any) -> Any:
    def cast(value: Any) -> Any:
        return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value

    return tree_map(cast, values)


__all__ = ["State", "Tree"]
