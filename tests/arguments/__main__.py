"""Compare bad calls with torch's answers: python -m tests.arguments [calls of each function] [seed] [part of a name]."""

from __future__ import annotations

import collections
import json
import sys

import torch

import retrograd
from retrograd._arguments import UNFIT
from tests.arguments.calls import functions
from tests.arguments.running import run

count, seed, part = (*sys.argv[1:], *("20", "0", "")[len(sys.argv) - 1 :])[:3]
figures: collections.Counter[str] = collections.Counter()
seen: dict[str, list[str]] = collections.defaultdict(list)
for written, key, _ in functions(retrograd, torch):
    if part not in written:
        continue
    for program, said in run({"retrograd": retrograd, "torch": torch}, written, key, int(count), int(seed)):
        ours, theirs = said["retrograd"], said["torch"]
        figures["calls"] += 1
        if theirs.error in ("crash", "hang"):
            figures[f"torch: {theirs.error}"] += 1
            if not ours.internal:
                continue
        kind = (
            "internal"
            if ours.internal and ours[:2] != theirs[:2]
            else "accepted"
            if theirs.error and not ours.error
            else "refused"
            if ours.error and not theirs.error
            else ""
        )
        if UNFIT in ours.words:
            figures["in no words of torch"] += 1
            seen["in no words of torch"].append(
                f"{program}\n    {ours.error}: {ours.words}\n    {theirs.error}: {theirs.words}"
            )
        if theirs.error:
            figures["torch refuses"] += 1
            figures["same class"] += ours.error == theirs.error
            figures["same words"] += ours[:2] == theirs[:2]
        if kind:
            figures[kind] += 1
            seen[kind].append(
                f"{program}\n    {ours.error}: {ours.words[:160]}\n    {theirs.error}: {theirs.words[:160]}"
            )
for kind, lines in seen.items():
    print(f"== {kind}")
    print("\n".join(lines))
print(json.dumps(figures, indent=1))
