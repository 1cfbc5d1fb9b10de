"""DataLoader against torch: the order of batches, the random numbers around them, the arguments it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.utils.data
from tests.oracle import answer, assert_same_answer
from tests.utils.data.samples import Drawing, Failing, Squares, as_they_are, refuse

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def values(batch: Any) -> Any:
    """Return a batch as numbers."""
    if isinstance(batch, (list, tuple)):
        return [values(one) for one in batch]
    return batch.tolist() if hasattr(batch, "tolist") else batch


def samplers(data: Any, generator: Any) -> dict[str, dict[str, Any]]:
    """Return the ways to choose an order."""
    return {
        "in order": {},
        "shuffled": {"shuffle": True},
        "own generator": {"shuffle": True, "generator": generator, "drop_last": True},
        "replaced": {"sampler": data.RandomSampler(range(20), replacement=True, num_samples=37)},
        "more than all": {"sampler": data.RandomSampler(range(20), num_samples=50, generator=generator)},
        "subset": {"sampler": data.SubsetRandomSampler([1, 5, 9, 11])},
        "weighted": {"sampler": data.WeightedRandomSampler([0.1] * 10 + [0.9] * 10, 12)},
        "shared": {"sampler": data.DistributedSampler(range(20), 2, 1)},
        "any iterable": {"sampler": [3, 1, 2, 3]},
        "batches of tensors": {
            "batch_size": 1,
            "batch_sampler": retrograd.arange(6).split(4) if data is retrograd.utils.data else torch.arange(6).split(4),
        },
        "batches of arrays": {"batch_size": 1, "batch_sampler": [np.array([3, 1]), np.array([2])]},
        "batches": {"batch_size": 1, "batch_sampler": [[3, 1], [2], [0, 4, 5]]},
        "one by one": {"batch_size": None, "shuffle": True},
    }


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("way", list(samplers(torch.utils.data, None)))
def test_order(way: str, workers: int) -> None:
    """Two epochs, with numbers of the default stream drawn before, within and after each."""

    def work(library: Any) -> Any:
        data = library.utils.data
        library.manual_seed(5)
        options = {"batch_size": 3} | samplers(data, library.Generator().manual_seed(8))[way]
        set_of = data.TensorDataset(library.arange(40.0).reshape(20, 2), library.arange(20))
        loader = data.DataLoader(set_of, num_workers=workers, **options)
        seen = []
        for _ in range(2):
            for batch in loader:
                seen += [values(batch), library.rand(()).item()]
        return seen

    assert_same_answer(work)


@pytest.mark.parametrize("persistent", [False, True])
def test_streams_of_workers(persistent: bool) -> None:
    """Python's, NumPy's and the library's numbers in each worker, over three epochs, of which one is left early."""

    def work(library: Any) -> Any:
        library.manual_seed(3)
        loader = library.utils.data.DataLoader(
            Drawing(library), 2, num_workers=2, persistent_workers=persistent, collate_fn=as_they_are
        )
        first = list(loader)
        left = next(iter(loader))
        return first, left, list(loader), library.rand(2).tolist()

    assert_same_answer(work)


def test_worker_info() -> None:
    def work(library: Any) -> Any:
        data = library.utils.data

        class Asking(data.Dataset):  # type: ignore[misc]
            def __len__(self) -> int:
                return 4

            def __getitem__(self, index: int) -> Any:
                info = data.get_worker_info()
                assert info.dataset is self
                return index, info.id, info.num_workers, info.seed, info.worker_method, library.get_num_threads()

        library.manual_seed(3)
        assert data.get_worker_info() is None
        return list(data.DataLoader(Asking(), 1, num_workers=2, collate_fn=as_they_are))

    assert_same_answer(work)


def stream_of(library: Any, length: int | None = None) -> Any:
    """Return a stream that workers share out among themselves, unevenly."""
    data = library.utils.data

    class Stream(data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            info = data.get_worker_info()
            return iter(range(11)) if info is None else iter(range(info.id * 3, 11 if info.id else 3))

    class Measured(Stream):
        def __len__(self) -> int:
            return length  # type: ignore[return-value]

        def __repr__(self) -> str:
            return "Measured"

    return Stream() if length is None else Measured()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_streams(workers: int, options: dict[str, Any]) -> None:
    def work(library: Any) -> Any:
        loader = library.utils.data.DataLoader(stream_of(library), num_workers=workers, **options)
        return [values(batch) for _ in range(2) for batch in loader]

    assert_same_answer(work)


def test_persistent_streams() -> None:
    def work(library: Any) -> Any:
        loader = library.utils.data.DataLoader(stream_of(library), 2, num_workers=2, persistent_workers=True)
        return [values(batch) for _ in range(3) for batch in loader]

    assert_same_answer(work)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_longer_than_its_length(workers: int) -> None:
    def work(library: Any) -> Any:
        loader = library.utils.data.DataLoader(stream_of(library, 2), num_workers=workers)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            length = len(loader), len(library.utils.data.DataLoader(stream_of(library, 7), 2))
            for _ in zip(range(4), loader, strict=False):
                pass
        return length, [(str(one.message), one.filename) for one in caught]

    assert_same_answer(work)


@pytest.mark.parametrize("prefetch", [1, 3])
def test_how_far_ahead(prefetch: int) -> None:
    """Indices are drawn from a sampler when torch draws them."""

    def work(library: Any) -> Any:
        drawn = []

        def indices() -> Any:
            for index in range(12):
                drawn.append(index)
                yield index

        class Noting:
            def __iter__(self) -> Any:
                return indices()

        loader = library.utils.data.DataLoader(
            Squares(12), 1, sampler=Noting(), num_workers=2, prefetch_factor=prefetch
        )
        batches = iter(loader)
        counts = [len(drawn)]
        for _ in batches:
            counts.append(len(drawn))
        return counts

    assert_same_answer(work)


REFUSED = [
    "num_workers=-1",
    "timeout=-1",
    "prefetch_factor=2",
    "num_workers=1, prefetch_factor=-1",
    "persistent_workers=True",
    "shuffle=True, sampler=[1]",
    "batch_sampler=[[1]], batch_size=2",
    "batch_sampler=[[1]], shuffle=True",
    "batch_sampler=[[1]], drop_last=True",
    "batch_size=None, drop_last=True",
    "batch_size=0",
    "batch_size=2.5",
    "multiprocessing_context='fork'",
    "num_workers=1, multiprocessing_context='spoon'",
    "num_workers=1, multiprocessing_context=1",
]
PROGRAMS = [
    *[f"data.DataLoader(range(4), {arguments})" for arguments in REFUSED],
    "data.DataLoader(stream, shuffle=True)",
    "data.DataLoader(stream, sampler=[1])",
    "data.DataLoader(stream, batch_sampler=[[1]])",
    "len(data.DataLoader(stream))",
    "data.DataLoader([], shuffle=True)",
    "list(data.DataLoader([]))",
    "list(data.DataLoader(range(4), timeout=1))",
    "len(data.DataLoader(range(10), 3)), len(data.DataLoader(range(10), 3, drop_last=True))",
    "len(data.DataLoader(range(10), batch_size=None)), len(data.DataLoader(range(10), batch_sampler=[[1]]))",
    "len(iter(data.DataLoader(range(10), 3)))",
    "len(data.DataLoader(range(10), sampler=iter([1])))",
    "setattr(data.DataLoader(range(4)), 'batch_size', 3)",
    "setattr(data.DataLoader(range(4)), 'dataset', 3)",
    "setattr(data.DataLoader(range(4)), 'collate_fn', 3)",
    "pickle.dumps(iter(data.DataLoader(range(4))))",
    "[(d.batch_size, d.drop_last, d.prefetch_factor) for d in [data.DataLoader(range(4), batch_sampler=[[1]])]]",
    "data.DataLoader(range(4), num_workers=2).prefetch_factor",
    "type(data.DataLoader(range(4)).sampler).__name__, type(data.DataLoader(stream).sampler).__name__",
    "data.DataLoader(range(4)).collate_fn.__name__, data.DataLoader(range(4), batch_size=None).collate_fn.__name__",
    "list(data.DataLoader([{'a': 1}, {'a': 2}], 2))[0]['a']",
    "list(data.DataLoader({'a': 1, 'b': 2}, 2, sampler='ab'))",
    "list(data.DataLoader(data.Subset(data.TensorDataset(torch.arange(5)), [4, 1, 2]), 2))",
    "list(data.DataLoader(data.TensorDataset(torch.arange(3)), sampler=[5]))",
    "list(data.DataLoader(data.TensorDataset(torch.arange(3)), 2, sampler=[-1, 0]))",
    "list(data.DataLoader(data.TensorDataset(torch.ones(3, requires_grad=True)), 2))",
    "list(data.DataLoader(data.StackDataset(data.TensorDataset(torch.arange(3)), range(3)), 2))",
    "list(data.DataLoader(data.Subset(range(5), [1, 2]), 2, sampler=[2]))",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_torch(program: str) -> None:
    import pickle

    ours, theirs = (
        answer(lib, program, data=lib.utils.data, stream=stream_of(lib), pickle=pickle) for lib in (retrograd, torch)
    )
    assert ours == theirs


def test_warnings() -> None:
    def warned(library: Any) -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loader = library.utils.data.DataLoader(range(2), num_workers=500)
            assert loader.num_workers == 500
            list(library.utils.data.DataLoader(range(2), pin_memory=True, pin_memory_device="cuda"))
        return [(one.category, str(one.message)) for one in caught]

    if not retrograd.cuda.is_available():
        assert_same_answer(warned)


def _error(library: Any, dataset: Any, **options: Any) -> Any:
    """Return what an epoch of workers gives, errors by their class and their text without the libraries' frames."""
    batches = iter(library.utils.data.DataLoader(dataset, 2, num_workers=2, **options))
    seen = []
    for _ in range(6):
        try:
            seen.append(values(next(batches)))
        except StopIteration:
            seen.append("end")
        except Exception as error:
            lines = [line for line in str(error).splitlines() if not line.startswith("    ")]
            seen.append(
                (
                    type(error).__name__,
                    [line for line in lines if "site-packages" not in line and "/retrograd/" not in line],
                )
            )
    return seen


@pytest.mark.parametrize("how", ["value", "key", "two", "stop"])
def test_what_goes_wrong_in_a_worker(how: str) -> None:
    assert_same_answer(lambda library: _error(library, Failing(how)))


def test_subclasses_have_the_last_word() -> None:
    """What a subclass of TensorDataset or Subset makes of a sample is what batches consist of."""

    def work(library: Any) -> Any:
        data = library.utils.data

        class Doubled(data.TensorDataset):  # type: ignore[misc]
            def __getitem__(self, index: Any) -> Any:
                return super().__getitem__(index)[0] * 2

        class Together(data.TensorDataset):  # type: ignore[misc]
            def __getitems__(self, indices: Any) -> Any:
                return [-1 for _ in indices]

        class Negated(data.Subset):  # type: ignore[misc]
            def __getitems__(self, indices: Any) -> Any:
                return [-one[0] for one in super().__getitems__(indices)]

        rows = library.arange(4)
        sets = [
            Doubled(rows),
            Together(rows),
            Negated(data.TensorDataset(rows), [3, 1]),
            data.Subset(Doubled(rows), [2]),
        ]
        return [values(batch) for one in sets for batch in data.DataLoader(one, 3)]

    assert_same_answer(work)


def test_a_worker_that_fails_at_its_start() -> None:
    ours, theirs = (_error(library, Squares(8), worker_init_fn=refuse) for library in (retrograd, torch))
    assert ours[:2] == theirs[:2]
    assert [one[0] for one in ours[:4]] == ["OSError"] * 4  # torch: UnboundLocalError from the third on


def test_a_loader_that_is_opened_again() -> None:
    """timm's MultiEpochsDataLoader replaces the batch sampler by way of a private name."""

    def work(library: Any) -> Any:
        loader = library.utils.data.DataLoader(range(4), batch_size=2)
        loader._DataLoader__initialized = False
        loader.batch_sampler = [[3, 2], [1, 0]]
        loader._DataLoader__initialized = True
        return values(list(loader))

    assert_same_answer(work)


def progress(torch: Any) -> list[Any]:
    """Return what helpers that resume an epoch read of its iterator, as it goes on."""
    data = torch.utils.data
    single = iter(data.DataLoader(range(4)))
    epoch = iter(data.DataLoader(range(10), batch_size=2, num_workers=2, worker_init_fn=len_of))
    seen = [single._profile_name, epoch._profile_name, epoch._worker_init_fn is len_of]
    for _ in range(2):
        seen += [
            epoch._send_idx,
            epoch._rcvd_idx,
            list(epoch._workers_status),
            sorted(epoch._task_info),
            epoch._shutdown,
        ]
        info = epoch._task_info.values()
        assert epoch._tasks_outstanding == len([one for one in info if len(one) == 1])
        next(epoch)
    epoch._shutdown_workers()
    return [*seen, epoch._shutdown, next(epoch._worker_queue_idx_cycle)]


def len_of(worker: int) -> None:
    """Do nothing at the start of a worker."""


def test_an_iterator_tells_how_far_it_is() -> None:
    assert_same_answer(progress)
