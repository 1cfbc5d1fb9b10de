"""The share of torch's names that retrograd has (`retrograd coverage`)."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import retrograd
from retrograd import _absent
from retrograd.cli import _coverage, main

PUBLIC_SHARE = 0.97  # of the public names that have a meaning on dense tensors; it only grows
MAY_BE_MISSING = 30  # of the names that libraries use; the number only falls


def test_a_name_is_looked_up_through_modules_and_classes() -> None:
    assert _coverage.exists("torch.nn.functional.relu")
    assert _coverage.exists("torch.Tensor.add_")
    assert _coverage.exists("torch._C._nn")
    assert not _coverage.exists("torch.nn.functional.relu7")
    assert not _coverage.exists("torch.nothing.at.all")


@pytest.mark.parametrize("arguments", [["coverage"], ["coverage", "public", "--all"]])
def test_the_command_counts_and_lists(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    lines = capsys.readouterr().out.splitlines()
    which = "public" if "public" in arguments else "used"
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{which}: "))
    assert "say what they need" in lines[start + 1]
    assert all("torch." in line for line in lines[start + 2 :])
    if which == "public":
        assert "without a meaning on dense tensors" in lines[0]
        assert all(int(line.split()[0]) > 0 for line in lines[1:start])


def test_every_area_without_meaning_has_names() -> None:
    text = (_coverage.COMPAT / "areas_without_meaning.txt").read_text()
    areas = [area for line in text.splitlines() if not line.startswith(("#", "=")) for area in line.split()]
    names = "\n".join(_coverage.public_names())
    empty = [area for area in areas if not _coverage.pattern([area], end="$|[.]").search(names)]
    assert not empty, f"no name of torch is in these areas: {empty}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torch.ao.quantization.QuantStub", "quantized numbers"),
        ("torch.quantize_per_tensor", "quantized numbers"),
        ("torch.Tensor.to_sparse_csr", "sparse layouts"),
        ("torch.nn.Linear", None),
        ("torch.fake_quantize_per_tensor_affine", None),
    ],
)
def test_areas_are_left_out_by_their_prefix(name: str, reason: str | None) -> None:
    assert _coverage.why_left_out(name) == reason


def test_public_names_with_a_meaning_on_dense_tensors_exist() -> None:
    names = [name for name in _coverage.public_names() if _coverage.why_left_out(name) is None]
    missing = [name for name in names if not _coverage.exists(name) or _coverage.says_what_it_needs(name)]
    share = 1 - len(missing) / len(names)
    assert share >= PUBLIC_SHARE, f"{share:.1%}: {missing}"


def test_the_share_of_names_that_libraries_use_only_grows() -> None:
    names = _coverage.used_names()
    missing = [name for name in names if not _coverage.exists(name)]
    assert len(missing) <= MAY_BE_MISSING, f"{len(missing)} of {len(names)}: {missing}"


def test_an_absent_name_says_what_it_needs() -> None:
    stub = importlib.import_module("retrograd.ao.quantization").QuantStub
    assert not isinstance(3, stub)
    with pytest.raises(NotImplementedError, match=r"torch\.ao\.quantization\.QuantStub needs quantized numbers"):
        stub()
    with pytest.raises(NotImplementedError, match=r"torch\.sparse\.mm needs sparse tensors"):
        retrograd.sparse.mm(retrograd.ones(1, 1), retrograd.ones(1, 1))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_thing'"):
        _ = retrograd.sparse.no_such_thing

    class Own(stub):  # type: ignore[misc, valid-type]
        pass

    with pytest.raises(NotImplementedError, match="quantized numbers"):
        Own()


def test_every_module_of_the_table_is_imported_under_torchs_name() -> None:
    homes = [home for home in _absent.table() if home not in ("torch", "torch._ops")]
    program = f"import importlib\nfor home in {homes!r}:\n    importlib.import_module(home)\nprint('all')"
    found = subprocess.run(
        [sys.executable, "-c", f"import retrograd\nretrograd.as_torch()\n{program}"], capture_output=True, text=True
    )
    assert found.stdout == "all\n", found.stderr


def test_questions_about_what_is_absent_are_answered() -> None:
    assert not retrograd.onnx.is_in_onnx_export()
    assert not retrograd.xpu.is_bf16_supported()
    with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
        retrograd.xpu.current_device()
    assert retrograd._C._get_tracing_state() is None
    config = importlib.import_module("retrograd._inductor").config
    with config.patch(fx_graph_cache=False):
        assert not config.fx_graph_cache
    assert config.fx_graph_cache
