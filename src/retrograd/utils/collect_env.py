"""torch.utils.collect_env: what to include in a bug report. `python -m retrograd.utils.collect_env` prints it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any, NamedTuple

from .. import cuda

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


# ---- what torch asks the system, question by question; each takes a function that runs a command ----
Run = Callable[[str], tuple[int, str, str]]

TORCH_AVAILABLE = True
COMMON_PATTERNS = {"torch", "numpy", "triton", "optree"}
NVIDIA_PATTERNS = {f"cuda-{part}" for part in ("cudart", "cupti", "libraries", "opencl", "nvtx", "runtime")}
NVIDIA_PATTERNS |= {"cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "nvjitlink", "nvtx"}
ONEAPI_PATTERNS = {
    "dpcpp-cpp-rt",
    "intel-cmplr-lib-rt",
    "intel-cmplr-lib-ur",
    "mkl",
    "onemkl-sycl-blas",
    "onemkl-sycl-dft",
}
CONDA_PATTERNS = {"cudatoolkit", "soumith", "mkl", "magma"}
PIP_PATTERNS = {"mypy", "flake8", "onnx", "retrograd"}


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command, and return its exit code, what it printed and its errors."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    return done.returncode, done.stdout.decode(errors="replace").strip(), done.stderr.decode(errors="replace").strip()


def run_and_read_all(run_lambda: Run, command: str) -> str | None:
    """Return what a command prints; None if it fails."""
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: str, regex: str) -> str | None:
    """Return the first group of a pattern in what a command prints; None if there is none."""
    code, out, _ = run_lambda(command)
    found = re.search(regex, out) if code == 0 else None
    return None if found is None else found.group(1)


def run_and_return_first_line(run_lambda: Run, command: str) -> str | None:
    """Return the first line that a command prints; None if it fails."""
    code, out, _ = run_lambda(command)
    return out.split("\n")[0] if code == 0 else None


def get_platform() -> str:
    """Return the kind of system."""
    kinds = {"linux": "linux", "win32": "win32", "cygwin": "cygwin", "darwin": "darwin"}
    return next((name for start, name in kinds.items() if sys.platform.startswith(start)), sys.platform)


def get_python_platform() -> str:
    """Return what Python says of the system."""
    return platform.platform()


def get_libc_version() -> str:
    """Return the version of the C library."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_mac_version(run_lambda: Run) -> str | None:
    """Return the version of macOS."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_windows_version(run_lambda: Run) -> str | None:
    """Return the version of Windows."""
    return run_and_read_all(run_lambda, 'powershell.exe -Command "(Get-CimInstance Win32_OperatingSystem).Caption"')


def get_lsb_version(run_lambda: Run) -> str | None:
    """Return the name of the distribution of Linux."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Run) -> str | None:
    """Return the name of the distribution of Linux, by its file."""
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Run) -> str | None:
    """Return the system and its version."""
    kind, machine = get_platform(), platform.machine()
    if kind in ("win32", "cygwin"):
        return get_windows_version(run_lambda)
    if kind == "darwin":
        version = get_mac_version(run_lambda)
        return None if version is None else f"macOS {version} ({machine})"
    if kind == "linux":
        name = get_lsb_version(run_lambda) or check_release_file(run_lambda)
        return f"{kind} ({machine})" if name is None else f"{name} ({machine})"
    return kind


def get_gcc_version(run_lambda: Run) -> str | None:
    """Return the version of gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """Return the version of clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """Return the version of CMake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_conda_packages(run_lambda: Run, patterns: set[str] | None = None) -> str | None:
    """Return the packages of conda that matter, one a line."""
    wanted = CONDA_PATTERNS | COMMON_PATTERNS | NVIDIA_PATTERNS | ONEAPI_PATTERNS if patterns is None else patterns
    out = run_and_read_all(run_lambda, f"{os.environ.get('CONDA_EXE', 'conda')} list")
    if out is None:
        return None
    return "\n".join(line for line in out.splitlines() if line[:1] != "#" and any(one in line for one in wanted))


def get_linux_pkg_version(run_lambda: Run, pkg_name: str) -> str:
    """Return the version of a package of the distribution."""
    found = run_and_parse_first_match(run_lambda, f"dpkg-query -W {pkg_name}", r"\t(.*)")
    return "N/A" if found is None else found


def get_cpu_info(run_lambda: Run) -> str | None:
    """Return what the system says of its processors."""
    command = "lscpu" if get_platform() == "linux" else "sysctl -n machdep.cpu.brand_string"
    return run_and_read_all(run_lambda, command)


def get_nvidia_smi() -> str:
    """Return the command that asks NVIDIA's driver."""
    return "nvidia-smi"


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """Return the version of NVIDIA's driver."""
    return run_and_parse_first_match(run_lambda, get_nvidia_smi(), r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda: Run) -> str | None:
    """Return the names of NVIDIA's devices."""
    out = run_and_read_all(run_lambda, f"{get_nvidia_smi()} -L")
    return None if out is None else re.sub(r" \(UUID: .+?\)", "", out)


def get_running_cuda_version(run_lambda: Run) -> str | None:
    """Return the version of CUDA's compiler."""
    return run_and_parse_first_match(run_lambda, "nvcc --version", r"release .+ V(.*)")


def get_cudnn_version(run_lambda: Run) -> str | None:
    """Return where cuDNN lies."""
    out = run_and_read_all(run_lambda, "ldconfig -p | grep libcudnn | rev | cut -d' ' -f1 | rev")
    return out or None


def get_cuda_module_loading_config() -> str:
    """Return how CUDA loads its modules."""
    return os.environ.get("CUDA_MODULE_LOADING", "N/A")


def get_cachingallocator_config() -> dict[str, str]:
    """Return what steers torch's allocator, as the environment has it."""
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def get_intel_gpu_onboard(run_lambda: Run) -> str | None:
    """Return Intel's devices, as the bus has them."""
    out = run_and_read_all(run_lambda, 'lspci | grep -E "VGA|Display" | grep Intel')
    return out or "N/A"


def get_intel_gpu_driver_version(run_lambda: Run) -> str:
    """Return the versions of Intel's drivers."""
    found = {name: get_linux_pkg_version(run_lambda, name) for name in ("intel_opencl", "level_zero")}
    return "\n".join(f"* {name}:\t{version}" for name, version in found.items())


def get_intel_gpu_detected(run_lambda: Run) -> str:
    """Return Intel's devices that are used: none are."""
    return "N/A"


def is_xnnpack_available() -> str:
    """Tell whether XNNPACK is there: it is not."""
    return "False"


env_info_fmt = """
PyTorch version: {torch_version}
retrograd version: {retrograd_version}
OS: {os}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
GPU models and configuration: {nvidia_gpu_models}
CPU: {cpu_info}

Versions of relevant libraries:
{pip_packages}
""".strip()


def pretty_str(envinfo: Any) -> str:
    """Write the facts as text."""
    facts = {name: "Could not collect" if value is None else value for name, value in envinfo._asdict().items()}
    facts["pip_packages"] = "\n".join(f"[pip3] {line}" for line in str(facts["pip_packages"]).splitlines())
    return env_info_fmt.format(**facts)


def get_pretty_env_info() -> str:
    """Return the facts as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the facts."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
