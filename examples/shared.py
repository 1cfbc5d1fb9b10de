"""What every example needs: its options, a progress bar, the digits."""

import argparse
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

DATA = Path(__file__).parent / "data"


def read_options(description, steps):
    """Read --steps, --seed and --out from the command line, and seed the random numbers."""
    arguments = argparse.ArgumentParser(description=description.splitlines()[0])
    arguments.add_argument("--steps", type=int, default=steps, help=f"how long to train (default: {steps})")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--out", type=Path, default=Path("."), help="folder for the picture")
    options = arguments.parse_args()
    if options.steps < 1:
        arguments.error("--steps must be at least 1")
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    return options


def training_steps(steps):
    """Count 1, 2, ..., steps, with a bar where the output is a terminal."""
    return tqdm(range(1, steps + 1), desc="training", unit="step", disable=None)


def report(step, steps, text):
    """Print a line ten times during the training; `tqdm.write` keeps clear of the bar."""
    if step == 1 or step % max(1, steps // 10) == 0:
        tqdm.write(f"step {step:5}: {text}")


def load_digits():
    """Give 1,797 handwritten digits: images (n, 1, 8, 8) with pixels from 0 to 1, and labels (n,)."""
    with np.load(DATA / "digits.npz") as file:
        images = torch.from_numpy(file["images"].astype(np.float32)) / 16
        labels = torch.from_numpy(file["labels"].astype(np.int64))
    return images.unsqueeze(1), labels
