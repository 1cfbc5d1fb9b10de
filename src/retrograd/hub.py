"""torch.hub: weights from the internet, kept in a folder. Code from there (`hub.load`) is not run."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # "resnet18-f37072fd.pth"
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
    """Load what `torch.save` wrote from an address; the second time from the folder. No `progress` is shown."""
    from .serialization import load

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / (file_name or os.path.basename(urlparse(url).path))
    if not place.exists():
        sys.stderr.write(f'Downloading: "{url}" to {place}\n')
        found = HASH_REGEX.search(place.name) if check_hash else None
        download_url_to_file(url, str(place), found[1] if found else None, progress)
    return load(str(place), map_location=map_location, weights_only=weights_only)


def load(repo_or_dir: str, model: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Refuse to fetch and run a repository."""
    raise NotImplementedError(
        "torch.hub.load: retrograd does not run code from the internet. Clone the repository, import its model, and load its "
        "weights with torch.hub.load_state_dict_from_url."
    )


__all__ = ["download_url_to_file", "get_dir", "load", "load_state_dict_from_url", "set_dir"]
