"""torch.hub: models of repositories that have a `hubconf.py`, and weights, from folders or from the internet."""

from __future__ import annotations

import builtins
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from ._tracebacks import guard_public as _guard_public

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # "resnet18-f37072fd.pth"
MODULE_HUBCONF = "hubconf.py"
TRUSTED_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_folder: str | None = None


def get_dir() -> str:
    """Return the folder for what is loaded: $TORCH_HOME/hub, by default in the user's cache."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def _get_torch_home() -> str:
    """Return the folder for what torch keeps of this user: $TORCH_HOME, by default in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def set_dir(d: str | os.PathLike[str]) -> None:
    """Choose the folder for what is loaded."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Load a file; it is in its place only when it is whole, and its hash begins as it should. No `progress` is shown."""
    place = Path(dst).expanduser()
    request = Request(url, headers={"User-Agent": "torch.hub"})
    digest = hashlib.sha256()
    with (
        urlopen(request) as source,
        tempfile.NamedTemporaryFile(dir=place.parent, prefix=place.name, delete=False) as target,
    ):
        try:
            while block := source.read(1 << 17):
                digest.update(block)
                target.write(block)
            target.close()
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            os.replace(target.name, place)
        except BaseException:
            os.unlink(target.name)
            raise


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """Load what `torch.save` wrote from an address; the second time from the folder. No `progress` is shown.

    Args:
        url: the address of a file
        model_dir: the folder in which it is kept
        map_location: where tensors go: see `torch.load`
        progress: accepted
        check_hash: whether the name of the file has the beginning of its digest, which is checked
        file_name: what it is called there
        weights_only: see `torch.load`

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
        ...     file = pathlib.Path(folder, "weights.pt")
        ...     torch.save(nn.Linear(2, 1).state_dict(), file)
        ...     state = torch.hub.load_state_dict_from_url(file.as_uri(), model_dir=folder, file_name="copy.pt", progress=False)
        Downloading: "file:...weights.pt" to ...copy.pt
        >>> list(state)
        ['weight', 'bias']
    """
    from .serialization import load

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / (file_name or os.path.basename(urlparse(url).path))
    if not place.exists():
        sys.stdout.write(f'Downloading: "{url}" to {place}\n')  # as torch does
        found = HASH_REGEX.search(place.name) if check_hash else None
        download_url_to_file(url, str(place), found[1] if found else None, progress)
    return load(str(place), map_location=map_location, weights_only=weights_only)


# ---- repositories ----
def load(
    repo_or_dir: str | os.PathLike[str],
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of a repository's `hubconf.py`: of a folder (`source="local"`), or of GitHub, by way of the folder of `get_dir`."""
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir
    if source == "github":
        folder = _repository(str(repo_or_dir), trust_repo, force_reload, verbose)
    with _entry_points(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """Return the names of what a repository offers."""
    with _entry_points(_repository(github, trust_repo, force_reload, verbose)) as module:
        return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check"
) -> str | None:
    """Return what a repository says of one of the functions that it offers."""
    with _entry_points(_repository(github, trust_repo, force_reload, True)) as module:
        words: str | None = _entry(module, model).__doc__
    return words


@contextmanager
def _entry_points(folder: str | os.PathLike[str]) -> Iterator[ModuleType]:
    """Run a repository's `hubconf.py`, for a block in which its other files can be imported."""
    place = os.path.join(os.path.expanduser(folder), MODULE_HUBCONF)
    if not os.path.exists(place):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", place, None, None)
    sys.path.insert(0, os.path.dirname(place))
    try:
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, place)
        if spec is None or spec.loader is None:
            raise AssertionError(f"{place} is no file of Python")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        missing = [name for name in getattr(module, "dependencies", None) or () if not _is_installed(name)]
        if missing:
            raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
        yield module
    finally:
        sys.path.remove(os.path.dirname(place))


def _is_installed(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


def _entry(module: ModuleType, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def _repository(github: str, trust_repo: Any, force_reload: bool, verbose: bool) -> str:
    """Return the folder of a repository of GitHub; it is loaded if it is not there."""
    owner, separator, rest = github.partition("/")
    if not separator:
        raise ValueError(f"'{github}' is no repository: it is called owner/name, or owner/name:branch")
    name, _, ref = rest.partition(":")
    home = Path(get_dir())
    home.mkdir(parents=True, exist_ok=True)
    branches = [ref] if ref else ["main", "master"]
    folders = [home / f"{owner}_{name}_{branch.replace('/', '_')}" for branch in branches]
    if not any(folder.exists() for folder in folders):  # what is there was trusted when it was loaded
        _check_trust(owner, name, home, trust_repo)
    kept = None if force_reload else next((folder for folder in folders if folder.exists()), None)
    if kept is not None:
        if verbose:
            sys.stderr.write(f"Using cache found in {kept}\n")
        return str(kept)
    for branch, folder in zip(branches, folders, strict=True):
        if _fetched(f"https://github.com/{owner}/{name}/zipball/{branch}", folder):
            return str(folder)
    raise RuntimeError(
        f"It looks like there is no internet connection and the repo could not be found in the cache ({home})\n"
        'Hint: clone the repository, and load it as torch.hub.load(folder, model, source="local").'
    )


def _fetched(url: str, folder: Path) -> bool:
    """Load a repository into a folder; tell whether that was possible."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as place:
        file = os.path.join(place, "repository.zip")
        try:
            download_url_to_file(url, file, progress=False)
        except URLError:  # no connection, or no such branch
            return False
        with zipfile.ZipFile(file) as archive:
            top = archive.namelist()[0].partition("/")[0]
            archive.extractall(place)
        if folder.exists():
            shutil.rmtree(folder)
        shutil.move(os.path.join(place, top), folder)
    return True


def _check_trust(owner: str, name: str, home: Path, trust_repo: Any) -> None:
    """Ask whether the code of a repository may run, unless that is known."""
    known = home / "trusted_list"
    known.touch()
    entry = f"{owner}_{name}"
    if entry in known.read_text().split() or (trust_repo == "check" and owner in TRUSTED_OWNERS):
        return
    if trust_repo is not True:
        question = (
            f"The repository {owner}/{name} does not belong to the list of trusted repositories and as such cannot be"
        )
        answer = input(
            f"{question} downloaded. Do you trust this repository and wish to add it to the trusted list (y/N)?"
        )
        if answer.lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    with known.open("a") as file:
        file.write(f"{entry}\n")


__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


_guard_public(globals())
