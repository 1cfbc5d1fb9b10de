"""torch.utils.collect_env: what to include in a bug report. `python -m retrograd.utils.collect_env` prints it."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

from .. import cuda
from .._absent import finder
from ._environment import pretty_str

PACKAGES = ("retrograd", "numpy", "scipy", "ml_dtypes", "opt_einsum", "threadpoolctl", "cupy-cuda13x", "cupy-cuda12x")


class SystemEnv(NamedTuple):
    """The facts, under torch's names where torch has them."""

    torch_version: str
    retrograd_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str | None
    pip_packages: str
    cpu_info: str


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def get_pip_packages() -> str:
    """Return the packages that matter, one a line, as pip writes them."""
    found = {package: _version_of(package) for package in PACKAGES}
    return "\n".join(f"{package}=={version}" for package, version in found.items() if version)


def get_env_info() -> SystemEnv:
    """Collect versions, the system and its devices."""
    has_cuda = cuda.is_available()
    return SystemEnv(
        torch_version=str(sys.modules["retrograd"].__version__),  # as the program sees it
        retrograd_version=_version_of("retrograd") or "not installed",
        os=f"{platform.system()} {platform.release()} ({platform.machine()})",
        libc_version="-".join(platform.libc_ver()) or "N/A",
        python_version=f"{sys.version.replace(os.linesep, ' ')} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(has_cuda),
        nvidia_gpu_models=cuda.get_device_name() if has_cuda else None,
        pip_packages=get_pip_packages(),
        cpu_info=f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors",
    )


__getattr__ = finder("torch.utils.collect_env")


def get_pretty_env_info() -> str:
    """Return the facts as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the facts."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
