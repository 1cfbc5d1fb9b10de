"""Whole programs as tutorials have them, which call `compile` where people do: they must say the same as without.

Each takes `compile`, which is `torch.compile` or hands back what it is given, and yields what there is to see, as it goes on.
"""

from __future__ import annotations

import copy
import io
import itertools
import math
import pickle
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import retrograd as torch
import retrograd.nn.functional as F  # noqa: N812 - torch's name
from retrograd import nn
from retrograd.utils.checkpoint import checkpoint, checkpoint_sequential

Tutorial = Callable[[Any], Iterator[Any]]
TUTORIALS: dict[str, Tutorial] = {}


def tutorial(function: Tutorial) -> Tutorial:
    TUTORIALS[function.__name__] = function
    return function


def mlp(*sizes: int, act: Any = nn.ReLU) -> nn.Sequential:
    layers: list[Any] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


def weights(model: Any) -> list[Any]:
    return [one.detach().clone() for one in model.state_dict().values()]


class Picklable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(3, 5, 2)

    def forward(self, x: Any) -> Any:
        return self.net(x).tanh()


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, low: float, high: float) -> Any:
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        low, high = ctx.bounds
        return (g * ((x > low) & (x < high)) if ctx.needs_input_grad[0] else None), None, None


# ---- compile, copied, saved and switched off ----
@tutorial
def pickled(compile: Any) -> Iterator[Any]:
    model = Picklable()
    fast = compile(model)
    x = torch.randn(4, 3)
    yield fast(x)
    again = pickle.loads(pickle.dumps(fast))
    for _ in range(3):
        yield again(x), again(x + 1)
    yield type(again).__name__ != "" and weights(model)


@tutorial
def copied_in_depth(compile: Any) -> Iterator[Any]:
    model = Picklable()
    fast = compile(model)
    x = torch.randn(4, 3)
    yield fast(x)
    other = copy.deepcopy(fast)
    with torch.no_grad():
        for one in other.parameters():
            one.zero_()
    for _ in range(3):
        yield fast(x), other(x)
    ema = copy.deepcopy(model)
    for _ in range(3):
        yield compile(ema)(x)


@tutorial
def saved_and_loaded(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    fast, x = compile(model), torch.randn(5, 3)
    optimizer = torch.optim.Adam(fast.parameters(), lr=0.1)
    for turn in range(6):
        optimizer.zero_grad()
        loss = fast(x).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()
        if turn == 2:
            file = io.BytesIO()
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for _ in range(3):
        yield fast(x)
    model.load_state_dict({name: one * 2 for name, one in state["model"].items()}, assign=True)
    for _ in range(3):
        yield fast(x)


@tutorial
def a_method_of_modules(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    if compile is torch.compile:
        model.compile()
        model[0].compile(mode="reduce-overhead")
    x = torch.randn(5, 3, requires_grad=True)
    for _ in range(3):
        out = model(x)
        out.sum().backward()
        yield out, x.grad.clone()
    model.append(nn.Sigmoid())
    yield model(x)
    yield model(x)


@tutorial
def switched_off_inside(compile: Any) -> Iterator[Any]:
    calls = []

    @torch.compiler.disable
    def counted(x: Any) -> Any:
        calls.append(len(calls))
        return x + len(calls)

    @compile
    def f(x: Any) -> Any:
        y = x.sin() * 2
        y = counted(y)
        return y.cos().sum()

    for _ in range(4):
        yield f(torch.ones(3)), list(calls)


@tutorial
def settings_of_dynamo(compile: Any) -> Iterator[Any]:
    import retrograd._dynamo as dynamo

    before = dynamo.config.suppress_errors
    dynamo.config.suppress_errors = True
    try:
        f = compile(lambda x: (x * 2).relu().sum())
        for size in (2, 3, 2, 4):
            yield f(torch.arange(size) - 1.0)
        dynamo.reset()
        yield f(torch.ones(2))
    finally:
        dynamo.config.suppress_errors = before


@tutorial
def a_decorator_with_options(compile: Any) -> Iterator[Any]:
    @compile(dynamic=True, mode="max-autotune")
    def f(x: Any, scale: float = 2.0) -> Any:
        return F.gelu(x) * scale

    for size in (2, 5, 3):
        yield f(torch.randn(size)), f(torch.randn(size, 2), scale=0.5)


# ---- adversaries and agents ----
@tutorial
def adversarial_networks(compile: Any) -> Iterator[Any]:
    maker, critic = mlp(2, 8, 3), mlp(3, 8, 1, act=lambda: nn.LeakyReLU(0.2))
    makes, judges = compile(maker), compile(critic)
    first, second = (
        torch.optim.Adam(maker.parameters(), 0.01),
        torch.optim.Adam(critic.parameters(), 0.01, betas=(0.5, 0.999)),
    )
    loss = nn.BCEWithLogitsLoss()
    for _ in range(4):
        real = torch.randn(6, 3) + 2
        second.zero_grad()
        fake = makes(torch.randn(6, 2))
        errors = loss(judges(real), torch.ones(6, 1)) + loss(judges(fake.detach()), torch.zeros(6, 1))
        errors.backward()
        second.step()
        first.zero_grad()
        fooled = loss(judges(fake), torch.ones(6, 1))
        fooled.backward()
        first.step()
        yield errors.item(), fooled.item()
    yield weights(maker), weights(critic)


@tutorial
def adversarial_networks_in_one_step(compile: Any) -> Iterator[Any]:
    maker, critic = mlp(2, 8, 3), mlp(3, 8, 1)
    first, second = torch.optim.RMSprop(maker.parameters(), 0.01), torch.optim.RMSprop(critic.parameters(), 0.01)

    @compile
    def step(real: Any, noise: Any) -> Any:
        fake = maker(noise)
        loss = critic(fake.detach()).mean() - critic(real).mean()
        second.zero_grad()
        loss.backward()
        second.step()
        for one in critic.parameters():
            one.data.clamp_(-0.1, 0.1)
        fooled = -critic(fake).mean()
        first.zero_grad()
        fooled.backward()
        first.step()
        return loss, fooled

    for _ in range(4):
        yield step(torch.randn(6, 3), torch.randn(6, 2))
    yield weights(maker), weights(critic)


@tutorial
def values_of_actions(compile: Any) -> Iterator[Any]:
    net, target = mlp(3, 8, 2), mlp(3, 8, 2)
    target.load_state_dict(net.state_dict())
    policy, optimizer = compile(net), torch.optim.AdamW(net.parameters(), 0.01)
    memory: deque[Any] = deque(maxlen=20)
    stream = random.Random(0)
    state = torch.zeros(3)
    for turn in range(14):
        if stream.random() < 0.3:
            action = stream.randrange(2)
        else:
            with torch.no_grad():
                action = int(policy(state.unsqueeze(0)).argmax(1).item())
        following = state + (torch.rand(3) - 0.5) * (action + 1)
        memory.append((state, action, float(following.sum()), following))
        state = following
        if len(memory) < 6:
            continue
        batch = stream.sample(list(memory), 4)
        states, nexts = torch.stack([one[0] for one in batch]), torch.stack([one[3] for one in batch])
        actions, rewards = torch.tensor([[one[1]] for one in batch]), torch.tensor([one[2] for one in batch])
        chosen = policy(states).gather(1, actions).squeeze(1)
        with torch.no_grad():
            best = target(nexts).max(1).values
        loss = F.smooth_l1_loss(chosen, rewards + 0.9 * best)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(net.parameters(), 100)
        optimizer.step()
        for mine, own in zip(target.parameters(), net.parameters(), strict=True):
            mine.data.copy_(0.05 * own.data + 0.95 * mine.data)
        yield turn, loss.item()
    yield weights(target)


@tutorial
def policy_with_saved_probabilities(compile: Any) -> Iterator[Any]:
    net = compile(mlp(2, 6, 2))
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    for _ in range(3):
        saved, rewards, state = [], [], torch.zeros(2)
        for _ in range(4):
            probabilities = F.softmax(net(state), -1)
            chosen = torch.distributions.Categorical(probabilities)
            action = chosen.sample()
            saved.append(chosen.log_prob(action))
            state = state + 0.1 * (action.item() + 1)
            rewards.append(float(state.sum()))
        total, returns = 0.0, []
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            returns.insert(0, total)
        loss = torch.stack([-p * r for p, r in zip(saved, returns, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


@tutorial
def proximal_policy(compile: Any) -> Iterator[Any]:
    actor, critic = mlp(3, 8, 2, act=nn.Tanh), mlp(3, 8, 1, act=nn.Tanh)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 0.01)

    @compile
    def update(states: Any, actions: Any, before: Any, returns: Any, clip: float) -> Any:
        logs = F.log_softmax(actor(states), -1).gather(1, actions).squeeze(1)
        values = critic(states).squeeze(1)
        gain = (returns - values).detach()
        ratio = (logs - before).exp()
        loss = -torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain).mean() + 0.5 * F.mse_loss(
            values, returns
        )
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(actor.parameters(), 0.5)
        optimizer.step()
        return loss.detach(), norm

    states, actions, returns = torch.randn(8, 3), torch.randint(2, (8, 1)), torch.randn(8)
    before = F.log_softmax(actor(states), -1).gather(1, actions).squeeze(1).detach()
    for clip in (0.2, 0.2, 0.1, 0.05, 0.02):
        yield update(states, actions, before, returns, clip)


# ---- training ----
@tutorial
def mixed_precision(compile: Any) -> Iterator[Any]:
    model = mlp(4, 8, 2)
    fast, optimizer, scaler = compile(model), torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu")
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.mse_loss(fast(torch.randn(6, 4)), torch.zeros(6, 2))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        yield loss.float(), scaler.get_scale()


@tutorial
def accumulation(compile: Any) -> Iterator[Any]:
    model = mlp(4, 8, 2)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)

    @compile
    def micro(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y) / 3
        loss.backward()
        return loss.detach()

    for turn in range(9):
        yield micro(torch.randn(5, 4), torch.randint(2, (5,)))
        if turn % 3 == 2:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            yield scheduler.get_last_lr(), weights(model)


@tutorial
def a_whole_loop(compile: Any) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    data = torch.utils.data.TensorDataset(torch.randn(22, 4), torch.randint(3, (22,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
    optimizer, loss_of = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, nesterov=True), nn.CrossEntropyLoss()
    fast = compile(model)
    for _ in range(3):
        fast.train()
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_of(fast(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        fast.eval()
        right = 0
        with torch.no_grad():
            for x, y in loader:
                right += int((fast(x).argmax(1) == y).sum())
        yield total, right
    yield weights(model)


@tutorial
def a_function_that_evaluates(compile: Any) -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    @compile
    @torch.no_grad()
    def evaluate(x: Any, y: Any) -> Any:
        model.eval()
        out = model(x)
        model.train()
        return (out.argmax(1) == y).float().mean(), out

    for _ in range(3):
        yield evaluate(torch.randn(5, 4), torch.randint(3, (5,))), model.training


@tutorial
def a_moving_average(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    fast, optimizer = compile(model), torch.optim.SGD(model.parameters(), 0.1)
    shown = compile(average)
    for _ in range(4):
        x = torch.randn(5, 3)
        optimizer.zero_grad()
        fast(x).square().sum().backward()
        optimizer.step()
        average.update_parameters(model)
        yield shown(x), fast(x)


@tutorial
def by_hand(compile: Any) -> Iterator[Any]:
    w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)

    @compile
    def step(x: Any, y: Any, rate: float) -> Any:
        loss = (x @ w + b - y).square().mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(rate * w.grad)
            b.sub_(rate * b.grad)
        w.grad = None
        b.grad = None
        return loss

    for turn in range(5):
        yield step(torch.randn(6, 3), torch.randn(6, 1), 0.1 / (turn + 1)), w.detach().clone(), b.grad


@tutorial
def closures_of_lbfgs(compile: Any) -> Iterator[Any]:
    # in float64: a step of LBFGS divides by differences of gradients, which makes much of the last bits
    model, x, y = mlp(2, 4, 1, act=nn.Tanh).double(), torch.randn(8, 2).double(), torch.randn(8, 1).double()
    loss_of = compile(lambda a, b: F.mse_loss(model(a), b))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        return loss

    for _ in range(3):
        yield optimizer.step(closure)
    yield weights(model)


@tutorial
def layers_frozen_and_replaced(compile: Any) -> Iterator[Any]:
    model = nn.ModuleDict({"body": mlp(3, 6, 6), "head": nn.Linear(6, 2)})

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, x: Any) -> Any:
            return self.parts["head"](self.parts["body"](x).relu())

    net = Net()
    fast, x = compile(net), torch.randn(4, 3)
    for turn in range(4):
        out = fast(x)
        out.sum().backward()
        yield out, [None if one.grad is None else one.grad.clone() for one in net.parameters()]
        net.zero_grad()
        if turn == 1:
            for one in model["body"].parameters():
                one.requires_grad = False
    model["head"] = nn.Linear(6, 4)
    for _ in range(2):
        yield fast(x)


@tutorial
def stopped_early(compile: Any) -> Iterator[Any]:
    model, best, left = mlp(2, 6, 1), math.inf, 2
    fast, optimizer = compile(model), torch.optim.Adagrad(model.parameters(), 0.3)
    x, y = torch.randn(10, 2), torch.randn(10, 1)
    kept = None
    for turn in range(12):
        optimizer.zero_grad()
        loss = F.huber_loss(fast(x[:7]), y[:7])
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            now = F.mse_loss(fast(x[7:]), y[7:]).item()
        yield turn, now
        if now < best:
            best, left, kept = now, 2, copy.deepcopy(model.state_dict())
        else:
            left -= 1
            if not left:
                break
    model.load_state_dict(kept)
    yield fast(x)


@tutorial
def several_losses(compile: Any) -> Iterator[Any]:
    trunk, one, two = mlp(3, 6, 6), nn.Linear(6, 1), nn.Linear(6, 3)
    logs = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*trunk.parameters(), *one.parameters(), *two.parameters(), logs], 0.02)

    @compile
    def losses(x: Any, y: Any, label: Any) -> dict[str, Any]:
        h = trunk(x).relu()
        parts = {
            "value": F.mse_loss(one(h).squeeze(-1), y),
            "label": F.cross_entropy(two(h), label, label_smoothing=0.1),
        }
        parts["all"] = sum(
            (part * (-logs[at]).exp() + logs[at] for at, part in enumerate(list(parts.values()))), torch.zeros(())
        )
        return parts

    for _ in range(4):
        found = losses(torch.randn(5, 3), torch.randn(5), torch.randint(3, (5,)))
        optimizer.zero_grad()
        found["all"].backward()
        optimizer.step()
        yield {name: value.item() for name, value in found.items()}


@tutorial
def an_optimizer_of_ones_own(compile: Any) -> Iterator[Any]:
    class Signed(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 0.1) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            for group in self.param_groups:
                for one in group["params"]:
                    if one.grad is not None:
                        state = self.state[one]
                        state["count"] = state.get("count", 0) + 1
                        one.add_(one.grad.sign(), alpha=-group["lr"] / state["count"])

    model = mlp(3, 4, 1)
    optimizer = Signed(model.parameters())

    @compile
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        yield step(torch.randn(5, 3)), weights(model)


# ---- graphs ----
@tutorial
def activations_by_hooks(compile: Any) -> Iterator[Any]:
    model, kept = mlp(3, 5, 2), {}
    fast, x = compile(model), torch.randn(4, 3)
    yield fast(x)
    yield fast(x)

    def keep(name: str) -> Any:
        def hook(module: Any, args: Any, out: Any) -> None:
            kept[name] = out.detach()

        return hook

    handles = [layer.register_forward_hook(keep(str(at))) for at, layer in enumerate(model)]
    for _ in range(3):
        kept.clear()
        yield fast(x), dict(kept)
    for handle in handles:
        handle.remove()
    kept.clear()
    yield fast(x), dict(kept)


@tutorial
def maps_of_classes(compile: Any) -> Iterator[Any]:
    body, head = nn.Conv2d(1, 3, 3), nn.Linear(3, 2)
    kept: dict[str, Any] = {}

    def classify(image: Any) -> Any:
        features = body(image).relu()
        features.register_hook(lambda g: kept.update(grads=g))
        kept["features"] = features
        return head(features.mean((2, 3)))

    fast = compile(classify)
    for _ in range(3):
        out = fast(torch.randn(1, 1, 6, 6))
        out[0, out.argmax()].backward()
        yield (kept["features"] * kept["grads"].mean((2, 3), keepdim=True)).sum(1).relu()


@tutorial
def gradients_scaled_by_hooks(compile: Any) -> Iterator[Any]:
    model, x = mlp(3, 4, 1), torch.randn(5, 3)
    handle = model[0].weight.register_hook(lambda g: g * 0.5)
    fast = compile(lambda v: model(v).sum())
    for turn in range(4):
        model.zero_grad()
        fast(x).backward()
        yield [one.grad.clone() for one in model.parameters()]
        if turn == 1:
            handle.remove()


@tutorial
def functions_with_their_own_backward(compile: Any) -> Iterator[Any]:
    f = compile(lambda x, low: Clamp.apply(x, low, 1.0).square().sum())
    for low in (-1.0, -0.5, -0.5, 0.0):
        x = torch.randn(6, requires_grad=True)
        f(x, low).backward()
        yield x.grad
    yield f(torch.randn(3), -1.0)


@tutorial
def checkpoints(compile: Any) -> Iterator[Any]:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Tanh()) for _ in range(4)])
    f = compile(lambda x: checkpoint_sequential(model, 2, x, use_reentrant=False).sum())
    g = compile(lambda x: checkpoint(model, x, use_reentrant=False).mean())
    for _ in range(3):
        x = torch.randn(3, 4, requires_grad=True)
        (f(x) + g(x)).backward()
        yield x.grad, [one.grad.clone() for one in model.parameters()]


@tutorial
def norms_of_weights(compile: Any) -> Iterator[Any]:
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    other = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2))
    model = nn.Sequential(layer, nn.Tanh(), other)
    fast, optimizer = compile(model), torch.optim.SGD(model.parameters(), 0.1)
    for turn in range(5):
        x = torch.randn(4, 3)
        optimizer.zero_grad()
        out = fast(x)
        out.square().sum().backward()
        optimizer.step()
        yield out, weights(model)
        if turn == 2:
            nn.utils.parametrize.remove_parametrizations(layer, "weight")


@tutorial
def attacks(compile: Any) -> Iterator[Any]:
    model = mlp(4, 6, 3)

    @compile
    def attack(x: Any, y: Any, size: float) -> Any:
        x = x.clone().detach().requires_grad_(True)
        (g,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
        return (x + size * g.sign()).detach().clamp(-2, 2)

    for size in (0.1, 0.2, 0.3, 0.1):
        yield attack(torch.randn(5, 4), torch.randint(3, (5,)), size)


@tutorial
def gradients_of_samples(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    params = {name: one.detach() for name, one in model.named_parameters()}

    def loss(p: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(torch.func.functional_call(model, p, (x.unsqueeze(0),)), y.unsqueeze(0))

    f = compile(torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)))
    for _ in range(3):
        yield f(params, torch.randn(5, 3), torch.randint(2, (5,)))


@tutorial
def learned_to_learn(compile: Any) -> Iterator[Any]:
    model = mlp(1, 5, 1, act=nn.Tanh)
    outer = torch.optim.Adam(model.parameters(), 0.01)

    @compile
    def adapted(x: Any, y: Any, rate: float) -> Any:
        p = dict(model.named_parameters())
        inner = F.mse_loss(torch.func.functional_call(model, p, (x,)), y)
        grads = torch.autograd.grad(inner, list(p.values()), create_graph=True)
        new = {name: one - rate * g for (name, one), g in zip(p.items(), grads, strict=True)}
        return F.mse_loss(torch.func.functional_call(model, new, (x + 0.1,)), y)

    for turn in range(4):
        x = torch.rand(6, 1)
        loss = adapted(x, (x * (turn + 1)).sin(), 0.1)
        outer.zero_grad()
        loss.backward()
        outer.step()
        yield loss


@tutorial
def gradients_penalised(compile: Any) -> Iterator[Any]:
    critic = mlp(2, 6, 1)

    @compile
    def penalty(real: Any, fake: Any) -> Any:
        mix = torch.rand(len(real), 1)
        x = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        return ((g.norm(2, dim=1) - 1) ** 2).mean()

    for _ in range(4):
        critic.zero_grad()
        loss = penalty(torch.randn(5, 2), torch.randn(5, 2))
        loss.backward()
        yield loss, [None if one.grad is None else one.grad.clone() for one in critic.parameters()]


# ---- sequences ----
@tutorial
def back_through_parts_of_time(compile: Any) -> Iterator[Any]:
    cell, head = nn.LSTMCell(2, 4), nn.Linear(4, 1)
    optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], 0.01)

    @compile
    def part(xs: Any, h: Any, c: Any) -> Any:
        loss = 0.0
        for x in xs.unbind(0):
            h, c = cell(x, (h, c))
            loss = loss + head(h).square().mean()
        return loss, h, c

    h, c = torch.zeros(3, 4), torch.zeros(3, 4)
    for _ in range(4):
        loss, h, c = part(torch.randn(5, 3, 2), h, c)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        h, c = h.detach(), c.detach()
        yield loss, h, c


@tutorial
def forced_by_a_teacher(compile: Any) -> Iterator[Any]:
    encoder, decoder = nn.GRU(3, 4, batch_first=True), nn.GRUCell(3, 4)
    head, stream = nn.Linear(4, 3), random.Random(1)

    def translate(source: Any, target: Any, force: bool) -> Any:
        _, h = encoder(source)
        h, token, outs = h[0], torch.zeros(source.shape[0], 3), []
        for at in range(target.shape[1]):
            h = decoder(token, h)
            out = head(h)
            outs.append(out)
            token = target[:, at] if force else out.softmax(-1)
        return torch.stack(outs, 1)

    fast = compile(translate)
    for _ in range(6):
        out = fast(torch.randn(2, 5, 3), torch.randn(2, 4, 3), stream.random() < 0.5)
        out.sum().backward()
        yield out, head.weight.grad.clone()


@tutorial
def generated_with_a_cache(compile: Any) -> Iterator[Any]:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.register_buffer("keys", torch.zeros(1, 6, 8), persistent=False)
            self.register_buffer("values", torch.zeros(1, 6, 8), persistent=False)

        def forward(self, x: Any, at: Any) -> Any:
            q, k, v = self.qkv(x).chunk(3, -1)
            self.keys[:, at] = k
            self.values[:, at] = v
            mask = torch.arange(6) <= at[-1]
            return self.out(F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask))

    layer = Attention()
    fast = compile(layer)
    with torch.no_grad():
        for at in range(5):
            yield fast(torch.randn(1, 1, 8), torch.tensor([at])), layer.keys.clone()


@tutorial
def tokens_one_by_one(compile: Any) -> Iterator[Any]:
    embed, block = nn.Embedding(7, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    head = nn.Linear(8, 7)

    @compile
    def logits(tokens: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return head(block(embed(tokens), src_mask=mask, is_causal=True))[:, -1]

    tokens = torch.tensor([[1]])
    with torch.no_grad():
        for _ in range(5):
            probabilities = F.softmax(logits(tokens) / 0.8, -1)
            tokens = torch.cat([tokens, torch.multinomial(probabilities, 1)], 1)
            yield tokens


@tutorial
def beams(compile: Any) -> Iterator[Any]:
    table = torch.randn(5, 5).log_softmax(-1)

    @compile
    def extend(scores: Any, last: Any, width: int) -> Any:
        every = scores[:, None] + table[last]
        top = every.flatten().topk(width)
        return top.values, top.indices // 5, top.indices % 5

    scores, last = torch.zeros(1), torch.zeros(1, dtype=torch.long)
    for _ in range(4):
        scores, parent, last = extend(scores, last, 3)
        yield scores, parent, last


# ---- images, densities, numerics ----
@tutorial
def denoising(compile: Any) -> Iterator[Any]:
    model = mlp(3, 8, 2)
    betas = torch.linspace(1e-3, 0.1, 10)
    kept = torch.cumprod(1 - betas, 0)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)

    @compile
    def step(x: Any) -> Any:
        t = torch.randint(10, (x.shape[0],))
        noise = torch.randn_like(x)
        a = kept[t][:, None]
        seen = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(model(torch.cat([seen, t[:, None] / 10], 1)), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        yield step(torch.randn(6, 2))

    @compile
    @torch.no_grad()
    def sample(x: Any, t: int) -> Any:
        z = torch.randn_like(x) if t else torch.zeros_like(x)
        guess = model(torch.cat([x, torch.full((len(x), 1), t / 10)], 1))
        return (x - betas[t] / (1 - kept[t]).sqrt() * guess) / (1 - betas[t]).sqrt() + betas[t].sqrt() * z

    x = torch.randn(4, 2)
    for t in reversed(range(10)):
        x = sample(x, t)
    yield x


@tutorial
def flows(compile: Any) -> Iterator[Any]:
    class Coupling(nn.Module):
        def __init__(self, swap: bool) -> None:
            super().__init__()
            self.net, self.swap = mlp(1, 6, 2), swap

        def forward(self, x: Any) -> Any:
            a, b = x.chunk(2, 1)
            if self.swap:
                a, b = b, a
            scale, shift = self.net(a).chunk(2, 1)
            scale = torch.tanh(scale)
            parts = [a, b * scale.exp() + shift]
            return torch.cat(parts[::-1] if self.swap else parts, 1), scale.sum(1)

    layers = nn.ModuleList([Coupling(bool(at % 2)) for at in range(3)])
    prior = torch.distributions.Normal(0.0, 1.0)
    optimizer = torch.optim.Adam(layers.parameters(), 0.02)

    @compile
    def likelihood(x: Any) -> Any:
        total = torch.zeros(x.shape[0])
        for layer in layers:
            x, log = layer(x)
            total = total + log
        return prior.log_prob(x).sum(1) + total

    for _ in range(4):
        loss = -likelihood(torch.randn(6, 2)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


@tutorial
def an_image_is_optimised(compile: Any) -> Iterator[Any]:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3)).requires_grad_(False)
    image = torch.rand(1, 1, 8, 8, requires_grad=True)
    wanted = net(torch.rand(1, 1, 8, 8))
    optimizer = torch.optim.Adam([image], 0.1)

    def gram(x: Any) -> Any:
        flat = x.flatten(2)
        return flat @ flat.transpose(1, 2) / flat.shape[-1]

    loss_of = compile(lambda x: F.mse_loss(gram(net(x)), gram(wanted)))
    for _ in range(4):
        optimizer.zero_grad()
        loss = loss_of(image)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            image.clamp_(0, 1)
        yield loss, image.detach().clone()


@tutorial
def steps_of_euler(compile: Any) -> Iterator[Any]:
    field = mlp(2, 6, 2, act=nn.Tanh)

    @compile
    def flow(x: Any, t: float, steps: int) -> Any:
        dt = t / steps
        for _ in range(steps):
            x = x + dt * field(x)
        return x

    for t, steps in ((1.0, 4), (1.0, 4), (0.5, 4), (0.5, 6), (0.25, 6)):
        field.zero_grad()
        out = flow(torch.ones(3, 2), t, steps)
        out.sum().backward()
        yield out, field[0].weight.grad.clone()


@tutorial
def means_of_clusters(compile: Any) -> Iterator[Any]:
    @compile
    def step(points: Any, centres: Any) -> Any:
        nearest = torch.cdist(points, centres).argmin(1)
        member = F.one_hot(nearest, len(centres)).to(points.dtype)
        return (member.t() @ points) / member.sum(0, keepdim=True).t().clamp(min=1), nearest

    points = torch.randn(20, 2)
    centres = points[:3].clone()
    for _ in range(5):
        centres, nearest = step(points, centres)
        yield centres, nearest


@tutorial
def powers(compile: Any) -> Iterator[Any]:
    matrix = torch.randn(4, 4)
    matrix = matrix @ matrix.t()

    @compile
    def largest(m: Any, v: Any) -> Any:
        for _ in range(5):
            v = m @ v
            v = v / v.norm()
        return v @ m @ v, v

    v = torch.ones(4)
    for _ in range(4):
        value, v = largest(matrix, v)
        yield value
    yield largest(matrix + 1, v)[0]


@tutorial
def measured(compile: Any) -> Iterator[Any]:
    class Accuracy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("right", torch.tensor(0))
            self.register_buffer("table", torch.zeros(3, 3, dtype=torch.long))
            self.seen = 0

        def forward(self, out: Any, y: Any) -> Any:
            guess = out.argmax(1)
            self.right += (guess == y).sum()
            self.table += torch.bincount(y * 3 + guess, minlength=9).reshape(3, 3)
            self.seen += len(y)
            return self.right / self.seen

    measure = Accuracy()
    fast = compile(measure)
    for size in (4, 4, 4, 3):
        yield fast(torch.randn(size, 3), torch.randint(3, (size,))), measure.table.clone(), measure.seen


@tutorial
def words(compile: Any) -> Iterator[Any]:
    inputs, outputs = nn.Embedding(9, 4), nn.Embedding(9, 4)
    optimizer = torch.optim.SGD([*inputs.parameters(), *outputs.parameters()], 0.5)

    @compile
    def loss_of(word: Any, near: Any, others: Any) -> Any:
        w = inputs(word)
        good = F.logsigmoid((w * outputs(near)).sum(1))
        bad = F.logsigmoid(-torch.bmm(outputs(others), w.unsqueeze(2)).squeeze(2)).sum(1)
        return -(good + bad).mean()

    for _ in range(4):
        loss = loss_of(torch.randint(9, (5,)), torch.randint(9, (5,)), torch.randint(9, (5, 3)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss, inputs.weight.detach().clone()


@tutorial
def progress_is_told(compile: Any) -> Iterator[Any]:
    model, told = mlp(3, 4, 1), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @compile
    def train(data: Any, epochs: int) -> float:
        total = 0.0
        for epoch in range(epochs):
            for at, x in enumerate(data):
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                total += loss.item()
                if at % 2 == 0:
                    told.append(f"epoch {epoch} batch {at}: {loss.item():.3f}")
        return total

    data = [torch.randn(4, 3) for _ in range(5)]
    for epochs in (1, 2, 1):
        yield train(data, epochs), list(told), weights(model)


@tutorial
def errors_pass_through(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    fast = compile(model)
    yield fast(torch.ones(2, 3))
    for shape in ((2, 4), (3,), (0, 3)):
        for _ in range(2):
            try:
                yield fast(torch.ones(shape))
            except RuntimeError as error:
                yield str(error).split("\n")[0]
    yield fast(torch.ones(2, 3))


@tutorial
def anomalies(compile: Any) -> Iterator[Any]:
    f = compile(lambda x: x.sqrt().sum())
    for number in (1.0, 0.0, -1.0):
        x = torch.full((2,), number, requires_grad=True)
        try:
            with torch.autograd.set_detect_anomaly(True):
                f(x).backward()
            yield x.grad
        except RuntimeError as error:
            yield str(error).split("\n")[0]


@tutorial
def a_model_that_is_inspected(compile: Any) -> Iterator[Any]:
    model = mlp(3, 4, 2)
    fast = compile(model)
    x = torch.randn(2, 3)
    yield fast(x)
    yield sum(one.numel() for one in fast.parameters()), len(list(fast.modules())) > 1, fast.training
    fast.eval()
    yield fast(x), model.training
    fast.to(torch.float64)
    yield fast(x.double()), next(model.parameters()).dtype
    fast.requires_grad_(False)
    yield fast(x.double()).requires_grad, fast(x.double()).requires_grad
    fast.apply(lambda one: nn.init.ones_(one.weight) if isinstance(one, nn.Linear) else None)
    yield fast(x.double())
