"""Files that torch.jit.save of torch has written run here, with torch's results."""

import io
import math
import warnings
from typing import Any

import pytest

import retrograd

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
nn = torch.nn


class Layers(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, groups=2)
        self.back = nn.ConvTranspose2d(1, 2, 2, stride=2)
        self.norm = nn.GroupNorm(2, 4)
        self.activations = nn.ModuleList(
            [
                nn.GELU(),
                nn.SiLU(inplace=True),
                nn.Hardswish(inplace=True),
                nn.ELU(),
                nn.Softplus(),
                nn.ReLU6(),
                nn.PReLU(),
            ]
        )
        self.larger = nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.norm(self.conv(x))
        for each in self.activations:
            x = each(x)
        y = nn.functional.pad(self.larger(self.back(y)), (1, 1, 1, 1), "reflect")
        return x, nn.functional.interpolate(nn.functional.avg_pool2d(y, 2), size=[4, 4], mode="nearest")


class Control(nn.Module):  # type: ignore[misc, name-defined]
    table: dict[str, list[int]]

    def __init__(self) -> None:
        super().__init__()
        self.table = {"a": [1, 2], "b": [3]}
        self.cells = nn.LSTMCell(3, 3)
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2)
        self.register_buffer("places", torch.arange(10.0).unsqueeze(1))

    @torch.jit.export
    def words(self, n: int) -> list[str]:
        out: list[str] = []
        for key, value in self.table.items():
            out.append(key + str(len(value)) + "-" + str(n))
        return out

    def shifted(self, x: torch.Tensor, by: int | None = None) -> torch.Tensor:
        if by is not None:
            x = x + by
        return x

    def forward(self, x: torch.Tensor):
        rows: list[torch.Tensor] = []
        h, c = torch.zeros(x.size(0), 3), torch.zeros(x.size(0), 3)
        for t in range(x.size(1)):
            h, c = self.cells(x[:, t], (h, c))
            if t == 1:
                continue
            elif t > 3:
                break
            rows.append(h)
        out, _ = self.lstm(x)
        out = out[..., :4] + self.places[: out.size(1)].unsqueeze(0)
        mixed, _ = self.attention(out, out, out, need_weights=False)
        mixed = self.shifted(mixed, 2).masked_fill(mixed.abs() < 0.1, -1e9 if math.pi > 3 else 0.0)
        at = torch.topk(mixed, 2, dim=-1)[1]
        best = mixed.gather(-1, at)
        best[0] = best[0] * 2
        best[:, 0, 1:] += 1.5
        while bool(best.sum() > 1000):
            best = best / 2
        assert best.dim() == 3, "three dimensions"
        top, place = best.max(dim=1)
        return (
            torch.stack(rows, 1),
            torch.cat([best.float(), best.to(torch.float64).float()], dim=-1),
            top,
            place,
            best.std(dim=0, unbiased=False).mean(),
            torch.einsum("ibc,ibc->ib", best, best).clamp(min=0.0, max=5.0),
            torch.arange(0, best.size(0), 2),
            f"{x.dim()}d {len(rows)}",
        )


def net() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 3), nn.LogSoftmax(1),
    )  # fmt: skip


def saved(made: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(made, file, **options)
    file.seek(0)
    return file


def scripted(module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module)


def frozen(module: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.freeze(module)


def traced(module: Any, *args: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(module, args, check_trace=False)


def agree(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other)
    elif isinstance(theirs, torch.Tensor):
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype) == str(theirs.dtype)
        other = retrograd.from_numpy(theirs.detach().numpy())
        retrograd.testing.assert_close(ours.detach(), other, rtol=1e-4, atol=1e-5)
    else:
        assert ours == theirs


def numbers(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def ours_of(values: Any) -> list[Any]:
    return [retrograd.from_numpy(each.numpy()) for each in values]


CASES = {
    "layers": (Layers, [(1, 2, 6), (1, 1, 3, 3)]),
    "net": (net, [(2, 1, 8, 8)]),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), [(2, 5, 8)]),
}


@pytest.mark.parametrize("how", ["scripted", "traced", "frozen"])
@pytest.mark.parametrize("name", CASES)
def test_a_program_of_torch_runs(name: str, how: str) -> None:
    make, shapes = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    inputs = [numbers(*shape) for shape in shapes]
    if how == "traced":
        made = traced(module, *inputs)
    else:
        made = scripted(module)
        made = frozen(made) if how == "frozen" else made
    loaded = retrograd.jit.load(saved(made))
    agree(loaded(*ours_of(inputs)), module(*inputs))
    with retrograd.no_grad():
        agree(loaded(*ours_of(inputs)), module(*inputs))


def test_control_flow_and_containers() -> None:
    torch.manual_seed(0)
    module = scripted(Control().eval())
    x = numbers(2, 5, 3)
    loaded = retrograd.jit.load(saved(module))
    agree(loaded(*ours_of([x])), module(x))
    assert loaded.words(3) == module.words(3) == ["a2-3", "b1-3"]
    assert loaded.table == {"a": [1, 2], "b": [3]}
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert [name for name, _ in loaded.named_modules()] == [name for name, _ in module.named_modules()]
    assert str(loaded) == str(module)


def test_a_program_of_torch_learns() -> None:
    module = nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.fill_(0.5)
        module.bias.zero_()
    loaded = retrograd.jit.load(saved(scripted(module)))
    optimizer = retrograd.optim.SGD(loaded.parameters(), lr=0.1)
    loaded(retrograd.ones(3, 2)).sum().backward()
    optimizer.step()
    retrograd.testing.assert_close(loaded.weight.detach(), retrograd.tensor([[0.2, 0.2]]))


def test_modes_and_dtypes_change() -> None:
    torch.manual_seed(0)
    module = net()
    loaded = retrograd.jit.load(saved(scripted(module)))
    assert loaded.training
    loaded.eval()
    x = numbers(2, 1, 8, 8)
    agree(loaded.to(retrograd.float64)(*ours_of([x.double()])), module.eval().double()(x.double()))


def test_functions_errors_and_files_beside() -> None:
    def checked(x: torch.Tensor, n: int) -> torch.Tensor:
        if n < 0:
            raise ValueError("n is negative")
        for i in range(n):
            x = x * 2 + i
        return x

    extra = {"note.txt": ""}
    loaded = retrograd.jit.load(saved(scripted(checked), _extra_files={"note.txt": "words"}), _extra_files=extra)
    assert loaded(retrograd.ones(2), 3).tolist() == [12.0, 12.0]
    assert extra["note.txt"] == b"words"
    with pytest.raises(Exception, match="n is negative"):
        loaded(retrograd.ones(2), -1)


def test_torch_load_hands_such_a_file_on() -> None:
    file = saved(scripted(nn.Linear(2, 1)))
    with pytest.warns(UserWarning, match="looks like a TorchScript archive dispatching to 'torch.jit.load'"):
        loaded = retrograd.load(file, weights_only=False)
    assert isinstance(loaded, retrograd.jit.ScriptModule)
    file.seek(0)
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        retrograd.load(file)
