"""Running a driver on retrograd, or on torch, and comparing what it prints with the recording.

Output is compared word by word: words must be equal, and numbers may differ by two units of the last digit that the recording
has, so that each driver says by rounding what it promises. Whole numbers must be equal.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# The modules that each driver imports: without them it is left out.
DRIVERS = {
    "accelerate_training": ["accelerate", "safetensors"],
    "captum_attributions": ["captum"],
    "diffusers_denoising": ["diffusers"],
    "e3nn_products": ["e3nn"],
    "einops_layers": ["einops"],
    "fastai_learning": ["fastai", "torchvision"],
    "geometric_graphs": ["torch_geometric"],
    "geoopt_manifolds": ["geoopt"],
    "gpytorch_regression": ["gpytorch"],
    "higher_steps": ["higher"],
    "ignite_training": ["ignite"],
    "kornia_images": ["kornia"],
    "laplace_curvature": ["backpack", "curvlinops", "laplace"],
    "lightning_training": ["lightning"],
    "opacus_privacy": ["opacus"],
    "peft_adapters": ["peft", "transformers"],
    "pyro_inference": ["pyro"],
    "safetensors_dtypes": ["safetensors"],
    "safetensors_files": ["safetensors"],
    "timm_models": ["timm", "torchvision"],
    "torchdiffeq_equations": ["torchdiffeq"],
    "torchmetrics_scores": ["torchmetrics"],
    "torchrl_policies": ["tensordict", "torchrl"],
    "torchvision_images": ["torchvision", "PIL"],
    "torchvision_models": ["torchvision"],
    "transformers_models": ["transformers"],
    "transformers_trainer": ["transformers", "accelerate"],
    "zuko_flows": ["zuko"],
}


def missing_libraries(driver: str) -> list[str]:
    """Return the modules that a driver imports and that are not installed."""
    return [name for name in DRIVERS[driver] if importlib.util.find_spec(name) is None]


def run(driver: str, on_torch: bool = False) -> str:
    """Run a driver in a folder of its own and return what it prints."""
    how = [] if on_torch else ["-m", "retrograd", "run"]
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, *how, HERE / f"{driver}.py"],
            cwd=folder,
            env={**os.environ, **quiet},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{driver} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def recording(driver: str) -> Path:
    """Return where the output of torch lies."""
    return HERE / "recorded" / f"{driver}.txt"


def differences(expected: str, actual: str) -> list[str]:
    """Compare two outputs line by line; numbers may differ by two units of the last digit that `expected` shows."""
    lines, others = expected.splitlines(), actual.splitlines()
    found = [f"{len(lines)} lines expected, {len(others)} printed"] if len(lines) != len(others) else []
    for line, other in zip(lines, others, strict=False):
        wanted, got = NUMBER.findall(line), NUMBER.findall(other)
        alike = NUMBER.sub("#", line) == NUMBER.sub("#", other) and all(map(is_near, wanted, got))
        if not alike:
            found.append(f"- {line}\n+ {other}")
    return found


def is_near(wanted: str, got: str) -> bool:
    """Whether a number is another within two units of its last digit; whole numbers must be equal."""
    mantissa, _, exponent = wanted.partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits) if digits or exponent else 0.0
    return abs(float(wanted) - float(got)) <= 2.001 * unit
