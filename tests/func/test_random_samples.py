"""Random numbers under vmap: drawn for every sample, once for all, or not at all."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("func_random_samples")

SHAPED = {
    "rand": lambda torch, t, k: torch.rand(3, **k),
    "randn": lambda torch, t, k: torch.randn((4, 5), **k),
    "randint": lambda torch, t, k: torch.randint(100, (3,), **k),
    "randint from": lambda torch, t, k: torch.randint(5, 100, (3,), **k),
    "normal": lambda torch, t, k: torch.normal(0.0, 1.0, (3,), **k),
    "randperm": lambda torch, t, k: torch.randperm(6, **k),
}
LIKE = {
    "rand_like": lambda torch, t, k: torch.rand_like(t),
    "randn_like": lambda torch, t, k: torch.randn_like(t),
    "randint_like": lambda torch, t, k: torch.randint_like(t, 3, 20),
}
WITH_PARAMETERS = {
    "bernoulli": lambda torch, t, k: torch.bernoulli(t, **k),
    "normal, mean": lambda torch, t, k: torch.normal(t, 1.0, **k),
    "normal, std": lambda torch, t, k: torch.normal(0.0, t, **k),
    "normal, both": lambda torch, t, k: torch.normal(t, t, **k),
    "poisson": lambda torch, t, k: torch.poisson(t * 5, **k),
    "gamma": lambda torch, t, k: torch._standard_gamma(t, **k),
    "dirichlet": lambda torch, t, k: torch._sample_dirichlet(t, **k),
    "binomial": lambda torch, t, k: torch.binomial(torch.full_like(t, 5.0), t, **k),
    "multinomial": lambda torch, t, k: torch.multinomial(t, 2, **k),
    "multinomial, replaced": lambda torch, t, k: torch.multinomial(t, 4, replacement=True, **k),
}
BERNOULLI_P = {"bernoulli, p": lambda torch, t, k: torch.bernoulli(t, 0.5, **k)}
DROPPED = {
    "dropout": lambda torch, t, k: torch.nn.functional.dropout(t, 0.5),
    "alpha_dropout": lambda torch, t, k: torch.nn.functional.alpha_dropout(t, 0.5, training=True),
    "dropout1d": lambda torch, t, k: torch.nn.functional.dropout1d(t[None], 0.5),
    "dropout2d": lambda torch, t, k: torch.nn.functional.dropout2d(t[None, :, None, None].expand(1, 4, 2, 2), 0.5),
    "feature_alpha_dropout": lambda torch, t, k: torch.nn.functional.feature_alpha_dropout(
        t[None, :, None, None].expand(1, 4, 2, 2), 0.5, training=True
    ),
    "native_dropout": lambda torch, t, k: torch.native_dropout(t, 0.5, True)[0],
    "not in training": lambda torch, t, k: torch.nn.functional.dropout(t, 0.5, training=False),
}
IN_PLACE = {
    "uniform_": lambda torch, t, k: t.uniform_(**k),
    "normal_": lambda torch, t, k: t.normal_(**k),
    "bernoulli_": lambda torch, t, k: t.bernoulli_(**k),
    "bernoulli_, p": lambda torch, t, k: t.bernoulli_(0.3, **k),
    "exponential_": lambda torch, t, k: t.exponential_(**k),
    "cauchy_": lambda torch, t, k: t.cauchy_(**k),
    "geometric_": lambda torch, t, k: t.geometric_(0.5, **k),
    "log_normal_": lambda torch, t, k: t.log_normal_(**k),
    "random_": lambda torch, t, k: t.random_(**k),
    "random_, to": lambda torch, t, k: t.random_(10, **k),
    "random_, from": lambda torch, t, k: t.random_(-5, 10, **k),
}
OUT = {
    "randn": lambda torch, t, k: torch.randn(3, out=torch.empty(3)),
    "randperm": lambda torch, t, k: torch.randperm(3, out=torch.empty(3, dtype=torch.int64)),
    "bernoulli": lambda torch, t, k: torch.bernoulli(t, out=torch.empty(4)),
    "normal": lambda torch, t, k: torch.normal(t, t, out=torch.empty(4)),
}


def chances(torch: Any, axis: int | None) -> Any:
    """Return numbers between 0 and 1: for four places, or for each of three samples on an axis."""
    if axis is None:
        return torch.linspace(0.1, 0.9, 4)
    rows = torch.linspace(0.1, 0.9, 12).reshape(3, 4)
    return rows if axis == 0 else rows.t().contiguous()


def drawn(torch: Any, operations: Any, axes: Any = (0, 1, None), generators: Any = (False, True)) -> Any:
    out = {}
    for name, operation in operations.items():
        for randomness in ("error", "same", "different"):
            for axis in axes:
                for own in generators:
                    torch.manual_seed(3)
                    k = {"generator": torch.Generator().manual_seed(5)} if own else {}
                    x = chances(torch, axis)

                    def run(t, _, operation=operation, k=k):
                        return operation(torch, t, k)

                    mapped = torch.vmap(run, in_dims=(axis, 0), randomness=randomness)
                    out[f"{name} {randomness} {axis} {own}"] = caught(mapped, x, torch.zeros(3)), x
    return out


@program
def of_a_shape(torch):
    return drawn(torch, SHAPED, axes=(0,))


@program
def like_a_tensor(torch):
    return drawn(torch, LIKE, generators=(False,))


@program
def with_tensors_as_parameters(torch):
    return drawn(torch, WITH_PARAMETERS)


@program
def with_one_chance(torch):
    return drawn(torch, BERNOULLI_P)


@program
def what_is_dropped(torch):
    return drawn(torch, DROPPED, generators=(False,))


@program
def in_place(torch):
    return drawn(torch, IN_PLACE)


@program
def into_a_tensor(torch):
    return drawn(torch, OUT, axes=(0, None), generators=(False,))


@program
def in_place_with_chances(torch):
    out = []
    for randomness in ("error", "same", "different"):
        for own in (0, None):
            for given in (0, 1, None):
                torch.manual_seed(3)
                x, p = chances(torch, own), chances(torch, given)
                mapped = torch.vmap(lambda a, b, _: a.bernoulli_(b), in_dims=(own, given, 0), randomness=randomness)
                out.append((randomness, own, given, caught(mapped, x, p, torch.zeros(3)), x))
    return out


@program
def two_parameters_on_axes_of_their_own(torch):
    out = []
    for randomness in ("error", "same", "different"):
        for first in (0, 1, None):
            for second in (0, 1, None):
                torch.manual_seed(3)
                a, b = chances(torch, first), chances(torch, second)
                mapped = torch.vmap(
                    lambda a, b, _: torch.normal(a, b), in_dims=(first, second, 0), randomness=randomness
                )
                out.append((randomness, first, second, caught(mapped, a, b, torch.zeros(3))))
    return out


@program
def one_vmap_in_another(torch):
    functions = (
        lambda t: t + torch.rand(()),
        lambda t: t + torch.randn(4),
        torch.rand_like,
        lambda t: torch.nn.functional.dropout(t + 1),
        lambda t: torch.randperm(3),
    )
    out = []
    for inner in ("same", "different", "error"):
        for outer in ("same", "different", "error"):
            for f in functions:
                torch.manual_seed(1)
                both = torch.vmap(torch.vmap(f, randomness=inner), randomness=outer)
                out.append((inner, outer, caught(both, torch.zeros(2, 3, 4))))
    return out


@program
def in_chunks(torch):
    out = []
    for randomness in ("same", "different", "error"):
        for size in (1, 2, 3, 4, 10):
            torch.manual_seed(1)
            like = torch.vmap(lambda t: t + torch.rand_like(t), randomness=randomness, chunk_size=size)
            out.append((randomness, size, caught(like, torch.zeros(5, 2))))
            torch.manual_seed(1)
            new = torch.vmap(lambda t: t + torch.rand(2), in_dims=1, out_dims=1, randomness=randomness, chunk_size=size)
            out.append((randomness, size, caught(new, torch.zeros(2, 5))))
    return out


@program
def in_jacobians(torch):
    x = torch.full((3,), 0.5)
    jacfwd = torch.func.jacfwd
    return [caught(f, x) for f in (
        jacfwd(torch.bernoulli), jacfwd(torch.bernoulli, randomness="same"), jacfwd(torch.bernoulli, randomness="different"),
        torch.func.jacrev(torch.bernoulli),
    )]  # fmt: skip


test_as_torch, test_recording_is_torchs = program.tests()
