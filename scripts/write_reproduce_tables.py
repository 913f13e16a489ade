"""Write the computed numbers into docs/reproduce.md; a test fails while they are not up to date.

Every block of commands with `--system paper:…` is followed by a table of what its evaluations take on the paper's
data, between the marks `<!-- computed -->` and `<!-- end -->`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from squtr.harness.cli import COMMANDS, parser_of
from squtr.harness.cli.common import duration
from squtr.harness.cli.computed_plan import size
from squtr.harness.cli.evaluate import planned
from squtr.harness.evaluation.computed import Component, ComputedPlan
from squtr.harness.evaluation.gpus import GPUS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reproduce.md"
_PAPER = re.compile(r"paper:(\w+)")
_PART = re.compile(r"```console\n([^`]*)```\n\n<!-- computed -->\n.*?<!-- end -->", re.DOTALL)


def commands(block: str) -> Iterator[list[str]]:
    """The words of the `squtr evaluate` commands of a block, without the program's name and the command."""
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["squtr", "evaluate"]:
            yield words[2:]


def plan_of(words: list[str]) -> ComputedPlan:
    """What a command takes, on stand-in data of its paper."""
    arguments = parser_of(COMMANDS["evaluate"]).parse_args(words)
    paper = _PAPER.fullmatch(arguments.system[0])
    if paper is None:
        raise SystemExit(f"no paper is named in: {shlex.join(words)}")
    arguments.data = f"stand-in:{paper[1]}"
    plan, _ = planned(arguments)
    return plan


def _row(plan: ComputedPlan) -> list[str]:
    known = [work for work in plan.works if math.isfinite(work.seconds(GPUS["H200"]))]
    times = []
    for gpu in GPUS.values():
        seconds = [work.seconds(gpu) for work in known]
        fits = all(map(math.isfinite, seconds))
        times.append(duration(sum(filter(math.isfinite, seconds))) + ("" if fits else " *"))
    held = plan.downloads.values()
    download = size(sum(one or 0 for one in held)) + (" and unknown" if None in held else "")
    return [*times, _largest(plan), download, size(sum(one.bytes for one in plan.stored))]


def _largest(plan: ComputedPlan) -> str:
    """The component that needs the most memory with one clip at a time, or with a batch of texts."""

    def needed(one: Component) -> int:
        return one.weights + one.working(1, plan.positions(one))

    largest = max(plan.components, key=needed)
    return f"{size(needed(largest))} ({largest.name})"


def _table(block: str) -> str:
    rows = [["systems", *GPUS, "GPU memory, largest model", "weights to download", "kept on disk"]]
    for words in commands(block):
        plan = plan_of(words)
        rows.append([str(len(plan.systems)), *_row(plan)])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def gpu_table() -> str:
    rows = [["GPU", "memory", "half precision", "float32", "bandwidth"]]
    for gpu in GPUS.values():
        peaks = [f"{peak / 1e12:g} TFLOPS" for peak in (gpu.half, gpu.single)]
        rows.append([gpu.name, size(gpu.memory), *peaks, f"{gpu.bandwidth / 1e12:g} TB/s"])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def with_numbers(page: str) -> str:
    """The page with its computed tables, and the table of GPUs, as they are now."""
    page = _PART.sub(
        lambda part: f"```console\n{part[1]}```\n\n<!-- computed -->\n{_table(part[1])}\n<!-- end -->", page
    )
    return re.sub(r"(<!-- gpus -->\n).*?(<!-- end -->)", rf"\g<1>{gpu_table()}\n\g<2>", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_numbers(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
