"""Every schedule sets torch's rates over a hundred epochs, saves torch's state and says what torch says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd
from tests.oracle import before_the_hint, outcome_and_warnings

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda s, o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
    "lambdas": lambda s, o: s.LambdaLR(o, [lambda epoch: 0.95**epoch, lambda epoch: 1 / (epoch + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda epoch: 0.95 if epoch % 2 else 1.01),
    "step": lambda s, o: s.StepLR(o, 7, gamma=0.5),
    "multi_step": lambda s, o: s.MultiStepLR(o, [30, 10, 30, 80], gamma=0.5),
    "constant": lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=13),
    "linear": lambda s, o: s.LinearLR(o, start_factor=0.1, end_factor=0.7, total_iters=40),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.97),
    "polynomial": lambda s, o: s.PolynomialLR(o, total_iters=60, power=1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, T_max=17, eta_min=0.003),
    "cosine_long": lambda s, o: s.CosineAnnealingLR(o, T_max=100),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=9, eta_min=0.001),
    "restarts_longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.4, step_size_up=9, step_size_down=4),
    "cyclic2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.4, 0.3], step_size_up=9, mode="triangular2"),
    "cyclic_range": lambda s, o: s.CyclicLR(o, 0.01, 0.4, step_size_up=9, mode="exp_range", gamma=0.98),
    "cyclic_own": lambda s, o: s.CyclicLR(o, 0.01, 0.4, step_size_up=9, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "one_cycle": lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=101),
    "one_cycle_line": lambda s, o: s.OneCycleLR(
        o, max_lr=[0.5, 0.2], epochs=11, steps_per_epoch=10, anneal_strategy="linear", pct_start=0.4, three_phase=True
    ),
    "sequential": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, total_iters=10), s.ExponentialLR(o, 0.95), s.CosineAnnealingLR(o, 20), s.StepLR(o, 5)],
        [10, 40, 70],
    ),
    "sequential_constant": lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.9)], [20]),
    "sequential_nested": lambda s, o: s.SequentialLR(
        o,
        [s.SequentialLR(o, [s.StepLR(o, 3), s.ExponentialLR(o, 0.9)], [20]), s.LinearLR(o, 0.1, total_iters=5)],
        [60],
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 20), s.ExponentialLR(o, 0.97), s.StepLR(o, 30)]),
    "swa": lambda s, o: s.SWALR(o, 0.05),
    "swa_line": lambda s, o: s.SWALR(o, [0.05, 0.2], anneal_epochs=20, anneal_strategy="linear"),
    "swa_at_once": lambda s, o: s.SWALR(o, 0.05, anneal_epochs=0),
}
OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda library, groups: library.optim.SGD(groups, lr=0.1, momentum=0.9),
    "Adam": lambda library, groups: library.optim.Adam(groups, lr=0.1),
    "tensor": lambda library, groups: library.optim.SGD(groups, lr=library.tensor(0.1), momentum=0.9),
}


class Names:
    """The schedules of a library, those of `swa_utils` among them."""

    def __init__(self, library: Any) -> None:
        self.places = (library.optim.lr_scheduler, library.optim.swa_utils)

    def __getattr__(self, name: str) -> Any:
        return next(getattr(place, name) for place in self.places if hasattr(place, name))


def made(library: Any, kind: str = "SGD") -> Any:
    ones = [library.nn.Parameter(library.ones(2)) for _ in range(2)]
    groups = [{"params": ones[:1]}, {"params": ones[1:], "lr": library.tensor(0.3) if kind == "tensor" else 0.3}]
    return OPTIMIZERS[kind](library, groups)


def rates(optimizer: Any) -> list[float]:
    found = []
    for group in optimizer.param_groups:
        momentum = group["betas"][0] if "betas" in group else group["momentum"]
        found += [float(group["lr"]), float(momentum)]
    return found


def plain(value: Any) -> Any:
    """Return a state_dict with Tensors as numbers."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return round(float(value), 5) if hasattr(value, "dtype") or isinstance(value, float) else value


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:Detected call")  # torch's own, of a sequence in a sequence
def test_a_hundred_epochs(torch: Any, case: str, kind: str) -> None:
    runs, states = [], []
    for library in (retrograd, torch):
        optimizer = made(library, kind)
        try:
            scheduler = CASES[case](Names(library), optimizer)
        except (RuntimeError, TypeError) as error:
            runs.append(type(error))
            continue
        run = [rates(optimizer)]
        for _ in range(100):
            optimizer.step()
            scheduler.step()
            run.append(rates(optimizer))
            assert [float(one) for one in scheduler.get_last_lr()] == run[-1][::2]
        runs.append(run)
        states.append(scheduler.state_dict())
    if states:
        np.testing.assert_allclose(*runs, rtol=1e-5 if kind == "tensor" else 1e-9, atol=1e-9)
        assert list(states[0]) == list(states[1])
        assert plain(states[0]) == plain(states[1])
    else:
        assert runs[0] == runs[1]


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_state_is_exchanged_mid_way(torch: Any, case: str) -> None:
    """Fifty epochs in torch, then fifty here, then twenty in torch again: as a hundred and twenty in torch."""
    straight, ours, theirs = made(torch), made(retrograd), made(torch)
    if "one_cycle" in case:
        pytest.skip("has a fixed number of steps")
    schedulers = [
        CASES[case](Names(library), o) for library, o in ((torch, straight), (retrograd, ours), (torch, theirs))
    ]

    def go(optimizer: Any, scheduler: Any, epochs: int) -> None:
        for _ in range(epochs):
            optimizer.step()
            scheduler.step()

    def exchange(one: Any, other: Any, source: Any, target: Any) -> None:
        target.load_state_dict(source.state_dict())
        for mine, group in zip(other.param_groups, one.param_groups, strict=True):
            mine.update({name: value for name, value in group.items() if name != "params"})

    go(straight, schedulers[0], 120)
    go(theirs, schedulers[2], 50)
    exchange(theirs, ours, schedulers[2], schedulers[1])
    ours.step()
    go(ours, schedulers[1], 50)
    exchange(ours, theirs, schedulers[1], schedulers[2])
    go(theirs, schedulers[2], 20)
    np.testing.assert_allclose(rates(theirs), rates(straight), rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("case", [name for name in CASES if not name.startswith(("sequential", "chained"))])
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_a_given_epoch(torch: Any, case: str) -> None:
    """`step(epoch)` uses the closed form where there is one."""
    runs = []
    for library in (retrograd, torch):
        optimizer = made(library)
        scheduler = CASES[case](Names(library), optimizer)
        run = []
        optimizer.step()
        for epoch in (3, 20, 21, 7, 50):
            scheduler.step(epoch)
            run.append(rates(optimizer))
            scheduler.step()
            run.append(rates(optimizer))
        runs.append(run)
    np.testing.assert_allclose(*runs, rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize("case", [name for name in CASES if not name.startswith(("sequential", "chained"))])
def test_resuming_by_last_epoch(torch: Any, case: str) -> None:
    """A new schedule with `last_epoch` goes on from the rates of the groups."""
    import functools

    runs = []
    for library in (retrograd, torch):
        optimizer = made(library)
        first = CASES[case](Names(library), optimizer)
        for _ in range(12):
            optimizer.step()
            first.step()

        class Resuming(Names):
            def __getattr__(self, name: str) -> Any:
                return functools.partial(super().__getattr__(name), last_epoch=12)

        second = CASES[case](Resuming(library), optimizer)
        run = [rates(optimizer)]
        for _ in range(12):
            optimizer.step()
            second.step()
            run.append(rates(optimizer))
        runs.append(run)
    np.testing.assert_allclose(*runs, rtol=1e-9)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max", "patience": 2},
        {"patience": 1, "cooldown": 3, "factor": 0.5, "min_lr": [0.01, 0.02]},
        {"patience": 0, "threshold": 0.2, "threshold_mode": "abs"},
        {"patience": 0, "threshold": 0.2, "mode": "max", "threshold_mode": "abs", "eps": 1e-3},
    ],
)
def test_plateaus(torch: Any, options: dict[str, Any]) -> None:
    measures = [1 / (k + 1) + 0.1 * ((k * 7) % 5) for k in range(100)]
    runs, states = [], []
    for library in (retrograd, torch):
        optimizer = made(library)
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        run = []
        for measure in measures:
            scheduler.step(library.tensor(measure, dtype=library.float64))
            run.append(rates(optimizer))
        runs.append(run)
        states.append(scheduler.state_dict())
    np.testing.assert_allclose(*runs, rtol=1e-9)
    assert list(states[0]) == list(states[1])
    assert plain(states[0]) == plain(states[1])


PROGRAMS = """L.StepLR(3,1)
L.StepLR(o,2,last_epoch=3)
L.StepLR(o,2).step()
((x:=L.StepLR(o,2)),o.step(),x.step())[-1]
((x:=L.StepLR(o,2)),o.step(),x.step(3),x.get_last_lr(),x.last_epoch)[-2:]
((x:=L.StepLR(o,2)),x.get_lr())[-1]
((x:=L.StepLR(o,2)),setattr(o,'step',lambda:1),x.step())[-1]
L.LambdaLR(oo,[lambda e:1])
L.LambdaLR(oo,lambda e:1).state_dict()
L.MultiplicativeLR(oo,[lambda e:1])
L.MultiStepLR(o,4)
L.ConstantLR(o,factor=2)
L.LinearLR(o,start_factor=0)
L.LinearLR(o,end_factor=2)
L.SequentialLR(o,[],[])
L.SequentialLR(o,[L.StepLR(o,2)],[1])
L.SequentialLR(o,[L.StepLR(o,2),L.StepLR(oo,2)],[1])
L.SequentialLR(o,[L.StepLR(o,2),L.ReduceLROnPlateau(o)],[1])
L.SequentialLR(o,[L.StepLR(o,2),3],[1])
L.ChainedScheduler([])
L.ChainedScheduler([L.StepLR(o,2),L.StepLR(oo,2)])
L.ChainedScheduler([L.StepLR(o,2),3])
L.ChainedScheduler([L.StepLR(o,2),L.ReduceLROnPlateau(o)])
L.ChainedScheduler([L.StepLR(o,2)],optimizer=oo)
L.ReduceLROnPlateau(o,factor=1.5)
L.ReduceLROnPlateau(3)
L.ReduceLROnPlateau(o,mode='x')
L.ReduceLROnPlateau(o,threshold_mode='x')
L.ReduceLROnPlateau(oo,min_lr=[1,2,3])
L.ReduceLROnPlateau(o).step(1.0,3)
L.ReduceLROnPlateau(o).step()
L.CyclicLR(om,.1,.5,mode='x')
L.CyclicLR(om,[.1,.2],.5)
L.CyclicLR(g,.1,.5)
L.CyclicLR(3,.1,.5)
L.CosineAnnealingWarmRestarts(o,0)
L.CosineAnnealingWarmRestarts(o,1,0)
L.CosineAnnealingWarmRestarts(o,1,eta_min='a')
L.CosineAnnealingWarmRestarts(o,3).step(-1)
((x:=L.CosineAnnealingWarmRestarts(o,3,2)),o.step(),x.step(4.5),x.get_last_lr(),x.state_dict())[-2:]
L.OneCycleLR(o,.5)
L.OneCycleLR(o,.5,total_steps=-1)
L.OneCycleLR(o,.5,total_steps=1.5)
L.OneCycleLR(o,.5,epochs=-1,steps_per_epoch=2)
L.OneCycleLR(o,.5,epochs=1,steps_per_epoch=-2)
L.OneCycleLR(o,.5,epochs=1)
L.OneCycleLR(o,.5,total_steps=10,pct_start=2)
L.OneCycleLR(o,.5,total_steps=10,anneal_strategy='x')
L.OneCycleLR(g,.5,total_steps=10)
L.OneCycleLR(om,[.5,.6],total_steps=10)
L.OneCycleLR(om,.5,total_steps=10,three_phase=True).state_dict()
((x:=L.OneCycleLR(om,.5,total_steps=1)),om.step(),x.step(),x.step())[-1]
torch.optim.swa_utils.SWALR(o,.5,anneal_strategy='x')
torch.optim.swa_utils.SWALR(o,.5,anneal_epochs=-1)
torch.optim.swa_utils.SWALR(oo,[.5])
L.LRScheduler(o)
(L.CyclicLR(om,.1,.5),om)[1]
((x:=L.LambdaLR(o,lambda e:1)),o.add_param_group({'params':[torch.nn.Parameter(torch.ones(1))]}),o.step(),x.step())[-1]
((x:=L.CyclicLR(om,.1,.5)),om.add_param_group({'params':[torch.nn.Parameter(torch.ones(1))]}),om.step(),x.step())[-1]
((x:=L.CosineAnnealingWarmRestarts(o,3)),o.add_param_group({'params':[torch.nn.Parameter(torch.ones(1))]}),o.step(),x.step())[-1]
L._enable_get_lr_call(L.StepLR(o,2)).__enter__().o._get_lr_called_within_step
L._warn_get_lr_called_within_step(L.StepLR(o,2))
[g.keys() for g in (L.StepLR(o,2),o.param_groups)[1]]
L.StepLR(o,2,verbose=True)
L.StepLR(o,2).print_lr()"""


def said(library: Any, program: str) -> Any:
    """Return what a program answers or raises, and its warnings."""
    optim = library.optim

    def one() -> Any:
        return library.nn.Parameter(library.ones(2))

    scope = {
        "torch": library,
        "L": optim.lr_scheduler,
        "o": optim.SGD([one()], lr=0.1),
        "om": optim.SGD([one()], lr=0.1, momentum=0.9),
        "oo": optim.SGD([{"params": [one()]}, {"params": [one()], "lr": 0.5}], lr=0.1),
        "g": optim.Adagrad([one()], lr=0.1),
    }
    return outcome_and_warnings(lambda: str(eval(program, scope)), words=before_the_hint)


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS.split("\n"))
def test_words(torch: Any, program: str) -> None:
    assert said(retrograd, program) == said(torch, program)


def test_objects_as_functions_are_saved() -> None:
    class Factor:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def __call__(self, epoch: int) -> float:
            return self.factor**epoch

    scheduler = retrograd.optim.lr_scheduler.LambdaLR(made(retrograd), Factor(0.5))
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [{"factor": 0.5}, {"factor": 0.5}]
    other = retrograd.optim.lr_scheduler.LambdaLR(made(retrograd), Factor(0.1))
    other.load_state_dict(state)
    assert other.lr_lambdas[0].factor == 0.5
