"""torch.hub: what a folder with a `hubconf.py` offers, and weights from an address."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.autograd.recording import caught

HUBCONF = '''
dependencies = ["json", "numpy"]
from beside import SHIFT

def _private():
    pass

def model(scale=2, **options):
    """A model.

    It scales."""
    return [scale + SHIFT, options]

class Kind:
    pass

number = 3
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "owner_name_main"
    place.mkdir()
    (place / "beside.py").write_text("SHIFT = 3\n")
    (place / "hubconf.py").write_text(HUBCONF)
    return place


@pytest.fixture(params=["retrograd", pytest.param("torch", marks=pytest.mark.oracle)])
def hub(request: Any, tmp_path: Path) -> Any:
    """Return the module of retrograd, and of torch, which shows that the tests are of torch's behaviour."""
    library = pytest.importorskip(request.param)
    before = library.hub._hub_dir if request.param == "torch" else library.hub._folder
    library.hub.set_dir(str(tmp_path))
    yield library.hub
    if request.param == "torch":
        library.hub._hub_dir = before
    else:
        library.hub._folder = before
    sys.modules.pop("beside", None)


def test_a_function_of_a_folder_is_called(hub: Any, folder: Path) -> None:
    assert hub.load(str(folder), "model", source="local") == [5, {}]
    assert hub.load(str(folder), "model", 4, source="local", key=1) == [7, {"key": 1}]
    assert str(folder) not in sys.path


def test_what_is_not_there_is_said(hub: Any, folder: Path, tmp_path: Path) -> None:
    calls = [
        (str(folder), "none", "local"),
        (str(folder), "number", "local"),
        (str(folder), 3, "local"),
        (str(folder), "model", "elsewhere"),
        (str(tmp_path / "nowhere"), "model", "local"),
    ]
    shown = [caught(hub.load, place, name, source=source) for place, name, source in calls]
    assert [(type(error).__name__, str(error)) for error in shown] == [
        ("RuntimeError", "Cannot find callable none in hubconf"),
        ("RuntimeError", "Cannot find callable number in hubconf"),
        ("ValueError", "Invalid input: model should be a string of function name"),
        ("ValueError", 'Unknown source: "elsewhere". Allowed values: "github" | "local".'),
        ("FileNotFoundError", f"[Errno 2] No such file or directory: '{tmp_path / 'nowhere' / 'hubconf.py'}'"),
    ]


def test_packages_that_are_missing_are_named(hub: Any, folder: Path) -> None:
    (folder / "hubconf.py").write_text("dependencies = ['no_such_package', 'nor_this']\ndef model(): pass\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package, nor_this"):
        hub.load(str(folder), "model", source="local")


def test_a_repository_in_the_cache_is_listed_and_explained(hub: Any, folder: Path, capsys: Any) -> None:
    assert hub.list("owner/name:main", trust_repo=True) == ["Kind", "model"]
    assert "Using cache found in" in capsys.readouterr().err
    assert hub.help("owner/name:main", "model", trust_repo=True).startswith("A model.")
    assert hub.load("owner/name:main", "model", trust_repo=True, verbose=False) == [5, {}]


def test_weights_come_from_a_file_once(hub: Any, tmp_path: Path, capsys: Any) -> None:
    retrograd.save({"a": 1}, tmp_path / "weights.pth")
    address = (tmp_path / "weights.pth").as_uri()
    kept = tmp_path / "kept"
    assert hub.load_state_dict_from_url(address, model_dir=str(kept), progress=False) == {"a": 1}
    assert "Downloading" in capsys.readouterr().out  # where torch writes it
    (tmp_path / "weights.pth").unlink()
    assert hub.load_state_dict_from_url(address, model_dir=str(kept), progress=False) == {"a": 1}


def test_a_repository_that_cannot_be_had(tmp_path: Path, monkeypatch: Any) -> None:
    from urllib.error import URLError

    def offline(*args: Any, **kwargs: Any) -> Any:
        raise URLError("no connection")

    monkeypatch.setattr(retrograd.hub, "urlopen", offline)
    monkeypatch.setattr(retrograd.hub, "_folder", str(tmp_path))
    with pytest.raises(RuntimeError, match="no internet connection and the repo could not be found in the cache"):
        retrograd.hub.load("owner/other", "model", trust_repo=True)
    with pytest.raises(ValueError, match="owner/name"):
        retrograd.hub.load("owner", "model", trust_repo=True)


def test_code_that_is_not_trusted_is_not_loaded(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(retrograd.hub, "_folder", str(tmp_path))
    monkeypatch.setattr(retrograd.hub, "_fetched", lambda url, folder: False)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    with pytest.raises(Exception, match="Untrusted repository"):
        retrograd.hub.load("owner/name:main", "model")
    monkeypatch.setattr("builtins.input", lambda question: "y")
    with pytest.raises(RuntimeError, match="no internet connection"):
        retrograd.hub.load("owner/name:main", "model")
    assert (tmp_path / "trusted_list").read_text().split() == ["owner_name"]
