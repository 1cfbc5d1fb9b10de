"""Typical mistakes in both libraries, message by message: writes the table in docs/errors.md.

python tools/make_errors.py [--write]        needs torch 2.13.0 (pip install torch==2.13.0)

Each mistake is a program of a few lines, run as a script is, with `import torch` giving one library or the other. What is kept is what
a user reads: the message, and how many lines of the traceback are the library's.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

DOCUMENT = Path(__file__).parent.parent / "docs" / "errors.md"
BEGIN, END = "<!-- written by tools/make_errors.py -->", "<!-- end -->"


class Mistake(NamedTuple):
    """A mistake that many people make, and a program with it."""

    what: str
    program: str
    more: str = ""  # words that retrograd's message has and torch's lacks: what it adds


MISTAKES = [
    # ---- shapes ----
    Mistake("shapes that do not broadcast", "torch.ones(3, 4) + torch.ones(3)", "[3, 4] and [3]"),
    Mistake("inner sizes of a product differ", "torch.ones(2, 3) @ torch.ones(2, 3)"),
    Mistake(
        "a layer gets the wrong number of features",
        "model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(64, 10))\nmodel(torch.ones(32, 784))",
        "Linear(in_features=64",
    ),
    Mistake("a view of the wrong size", "torch.ones(2, 3).view(4, 2)"),
    Mistake("a view of memory that is not contiguous", "torch.ones(2, 3).t().view(6)"),
    Mistake("an image without channels", "nn.Conv2d(3, 8, 3)(torch.ones(1, 28, 28))"),
    Mistake("tensors of different sizes are joined", "torch.cat([torch.ones(2, 3), torch.ones(2, 4)])"),
    Mistake("tensors of different sizes are stacked", "torch.stack([torch.ones(2), torch.ones(3)])"),
    Mistake("a dimension that is not there", "torch.ones(2, 3).sum(dim=2)"),
    Mistake("an index out of range", "torch.ones(3)[5]"),
    Mistake("an index into an embedding out of range", "nn.Embedding(10, 4)(torch.tensor([3, 10]))"),
    Mistake("a label out of range", "F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))"),
    Mistake("batch sizes of scores and labels differ", "F.cross_entropy(torch.ones(4, 3), torch.tensor([0, 1]))"),
    Mistake("ragged lists", "torch.tensor([[1, 2], [3]])"),
    # ---- dtypes and devices ----
    Mistake("labels are floats", "F.nll_loss(torch.ones(2, 3), torch.tensor([0.0, 1.0]))"),
    Mistake("float64 data, float32 model", "nn.Linear(3, 1)(torch.ones(2, 3, dtype=torch.float64))"),
    Mistake("integers into a layer", "nn.Linear(3, 1)(torch.ones(2, 3, dtype=torch.int64))"),
    Mistake("a gradient of integers", "torch.ones(3, dtype=torch.int64, requires_grad=True)"),
    Mistake("the mean of integers", "torch.arange(4).mean()"),
    Mistake("a mask is subtracted", "1 - torch.tensor([True, False])"),
    Mistake("a device that is not there", 'torch.ones(3, device="cuda")'),
    Mistake("a word where a tensor belongs", 'torch.ones(3) + "1"'),
    Mistake("the old constructor gets new arguments", "torch.Tensor([1.0], requires_grad=True)", "torch.tensor(data)"),
    Mistake("a list where a tensor belongs", "torch.exp([1.0, 2.0])"),
    Mistake("the mean of a list", "losses = [torch.ones(()), torch.ones(())]\ntorch.mean(losses)", "torch.stack(list)"),
    Mistake(
        "an array given to a layer",
        "import numpy as np\n\nnn.Linear(2, 2)(np.ones((1, 2), dtype=np.float32))",
        "torch.from_numpy(array)",
    ),
    Mistake("arguments in an unknown form", 'torch.add(torch.ones(2), "x")'),
    Mistake("a misspelled argument", "torch.ones(3).sum(dims=0)"),
    Mistake("a misspelled name", "torch.zeroes(3)"),
    # ---- gradients ----
    Mistake("backward from more than one number", "x = torch.ones(3, requires_grad=True)\n(x * 2).backward()"),
    Mistake(
        "backward twice",
        "x = torch.ones(3, requires_grad=True)\nloss = (x * x).sum()\nloss.backward()\nloss.backward()",
        "The graph was freed by",
    ),
    Mistake(
        "nothing requires a gradient",
        "x = torch.ones(3)\nloss = (x * x).sum()\nloss.backward()",
        "requires_grad_()",
    ),
    Mistake(
        "the graph was cut by detach()",
        "w = torch.ones(3, requires_grad=True)\nh = (w * 2).detach()\nloss = h.sum()\nloss.backward()",
        "h = (w * 2).detach()",
    ),
    Mistake(
        "the loss was computed under no_grad",
        "w = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    loss = (w * 2).sum()\nloss.backward()",
        "with torch.no_grad():",
    ),
    Mistake(
        "a leaf is changed in place",
        "w = torch.ones(3, requires_grad=True)\nw -= 0.1",
        "with torch.no_grad()",
    ),
    Mistake(
        "a value that backward needs is overwritten",
        "x = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()",
        "y += 1",
    ),
    Mistake(
        "a hidden state is carried from one step to the next",
        "w = torch.ones(3, requires_grad=True)\nh = torch.zeros(3)\n"
        "for step in range(2):\n    h = torch.tanh(h + w)\n    h.sum().backward()",
        "is cut off by detach()",
    ),
    Mistake(
        "an optimizer's step comes before a backward that needs the old weights",
        "w = torch.ones(3, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\nfirst, second = (w * w).sum(), (w * w).mean()\n"
        "first.backward()\noptimizer.step()\nsecond.backward()",
        "Call step() after the last backward",
    ),
    Mistake("numpy() of what requires a gradient", "torch.ones(3, requires_grad=True).numpy()"),
    Mistake(
        "a gradient of what was not used",
        "x, y = torch.ones(2, 3, requires_grad=True)\ntorch.autograd.grad(x.sum(), y)",
    ),
    Mistake(
        "a custom backward returns too few gradients",
        "class Product(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, y):\n"
        "        ctx.save_for_backward(x, y)\n"
        "        return x * y\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        x, y = ctx.saved_tensors\n"
        "        return g * y\n\n\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "Product.apply(x, torch.ones(3)).sum().backward()",
        "return one gradient for each argument",
    ),
    # ---- modules, optimizers, data ----
    Mistake("an optimizer without parameters", "torch.optim.SGD([], lr=0.1)"),
    Mistake(
        "an optimizer gets the model",
        "torch.optim.SGD(nn.Linear(2, 2), lr=0.1)",
        "model.parameters()",
    ),
    Mistake("a class where a module belongs", "nn.Sequential(nn.Linear(2, 2), nn.ReLU)", "ReLU()"),
    Mistake(
        "a loss that was not made before it is called",
        "nn.CrossEntropyLoss(torch.ones(2, 3), torch.tensor([0, 1]))",
        "criterion = nn.CrossEntropyLoss()",
    ),
    Mistake(
        "a module without super().__init__()",
        "class Net(nn.Module):\n    def __init__(self):\n        self.fc = nn.Linear(2, 2)\n\n\nNet()",
    ),
    Mistake(
        "a forward that returns nothing",
        "class Net(nn.Module):\n    def forward(self, x):\n        x * 2\n\n\nF.relu(Net()(torch.ones(3)))",
        "no return statement",
    ),
    Mistake(
        "a state dict of a wrapped model",
        "model = nn.Linear(2, 2)\nstate = nn.DataParallel(model).state_dict()\nmodel.load_state_dict(state)",
        "removeprefix('module.')",
    ),
    Mistake("a state dict of another model", "nn.Linear(3, 2).load_state_dict(nn.Linear(2, 2).state_dict())"),
    Mistake("item() of more than one number", "torch.ones(3).item()"),
    Mistake("an if of more than one number", "if torch.ones(3) > 0:\n    pass"),
    Mistake(
        "samples of different sizes in a batch",
        "data = [torch.ones(2), torch.ones(3)]\nnext(iter(torch.utils.data.DataLoader(data, batch_size=2)))",
    ),
    Mistake("a branch on a value inside vmap", "torch.vmap(lambda x: x if x > 0 else -x)(torch.ones(3))"),
]


class Answer(NamedTuple):
    """What a program raised: the class and words of the error, and the frames of its traceback that are the library's."""

    kind: str
    words: str
    frames: int


def answer(library: Any, mistake: Mistake) -> Answer:
    """Run a program as a script of its own, in a file of its own name."""
    file = f"{mistake.what}.py"
    names = {"torch": library, "nn": library.nn, "F": library.nn.functional, "__name__": "__main__"}
    folder = str(Path(library.__file__).parent)
    as_torch = getattr(library, "as_torch", contextlib.nullcontext)
    try:
        with (
            as_torch(),
            tempfile.TemporaryDirectory() as empty,
            contextlib.chdir(empty),
            warnings.catch_warnings(action="ignore"),
        ):
            Path(file).write_text(mistake.program)  # which messages quote
            exec(compile(mistake.program, file, "exec"), names)
    except Exception as error:
        shown = traceback.extract_tb(error.__traceback__)[1:]  # without this one
        frames = sum(one.filename.startswith((folder, "<retrograd")) for one in shown)
        return Answer(type(error).__name__, str(error).rstrip(), frames)
    raise AssertionError(f"{mistake.what}: no error in {library.__name__}")


def table(answers: list[tuple[Mistake, Answer, Answer]]) -> str:
    """Write the mistakes, one section each, and what both libraries say."""
    lines = ["| | mistake | frames of torch | of retrograd | what retrograd adds |", "|---|---|---|---|---|"]
    for number, (mistake, ours, theirs) in enumerate(answers, 1):
        added = [line for line in ours.words.splitlines() if line.strip() not in theirs.words]
        shown = added[0].split("Hint: ")[-1].replace("|", "\\|") if added else ""
        lines.append(f"| {number} | {mistake.what} | {theirs.frames} | {ours.frames} | {shown} |")
    lines.append("")
    for number, (mistake, ours, theirs) in enumerate(answers, 1):
        lines += [
            f"### {number}. {mistake.what[0].upper()}{mistake.what[1:]}",
            "",
            "<!-- run by: tools/make_errors.py -->",
            "```python",
            mistake.program,
            "```",
            "",
        ]
        same = (ours.kind, ours.words) == (theirs.kind, theirs.words)
        for name, said in (("torch and retrograd", ours),) if same else (("torch", theirs), ("retrograd", ours)):
            lines += [f"{name}:", "", "```text", f"{said.kind}: {said.words}", "```", ""]
    return "\n".join(lines)


def main() -> None:
    """Print the table, or write it into the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/errors.md")
    options = parser.parse_args()
    import torch

    import retrograd

    made = table([(one, answer(retrograd, one), answer(torch, one)) for one in MISTAKES])
    if not options.write:
        sys.stdout.write(made)
        return
    text = DOCUMENT.read_text()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{head}{BEGIN}\n{made}{END}{tail}")


if __name__ == "__main__":
    main()
