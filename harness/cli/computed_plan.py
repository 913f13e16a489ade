"""What a computed plan prints: times by GPU, downloads and memory by component, and what is kept on disk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..evaluation.computed import Component, ComputedPlan
from ..evaluation.gpus import GPUS, UTILIZATION
from ..evaluation.run import counted
from .common import duration, table_text

MEMORY_GPU = "A100-80G"
"""The GPU whose memory the batches of the table are for."""


def plan_json(plan: ComputedPlan) -> dict[str, Any]:
    """The plan as JSON; what is not known is null."""
    return {
        "systems": list(plan.systems),
        "configs": list(plan.configs),
        "stages": [
            {
                "stage": work.stage,
                "component": work.component.name,
                "of": work.scope,
                "items": work.items,
                "seconds": {name: _known(work.seconds(gpu)) for name, gpu in GPUS.items()},
            }
            for work in plan.works
        ],
        "components": [
            {"component": one.name, "repository": one.repository, **_memory(plan, one)} for one in plan.components
        ],
        "downloads": dict(plan.downloads),
        "stored": [
            {"what": one.what, "component": one.component, "items": one.items, "bytes": one.bytes}
            for one in plan.stored
        ],
    }


def plan_text(plan: ComputedPlan, download: int = 0) -> str:
    """The plan to read; `download` are the bytes of the data itself (0: not known, or at hand)."""
    parts = [
        f"{counted(len(plan.systems), 'system')} on {counted(len(plan.configs), 'config')}: {', '.join(plan.configs)}",
        _stages(plan),
        _components(plan),
        _stored(plan, download),
        f"Times and sizes are computed from parameters and counts, at {UTILIZATION:.0%} of a GPU's stated peak; "
        "lexical search and scoring are not counted. Nothing was evaluated or downloaded.",
    ]
    return "\n\n".join(parts)


def _stages(plan: ComputedPlan) -> str:
    rows = [("stage", "component", "of", "items", *GPUS)]
    for work in plan.works:
        times = [duration(work.seconds(gpu)) for gpu in GPUS.values()]
        rows.append((work.stage, work.component.name, work.scope, f"{work.items:,}", *times))
    totals = [sum(s for work in plan.works if math.isfinite(s := work.seconds(gpu))) for gpu in GPUS.values()]
    rows.append(("all that is computed", "", "", "", *map(duration, totals)))
    return table_text(rows)


def _components(plan: ComputedPlan) -> str:
    rows = [("component", "repository", "download", "weights", "number type", f"beside them on {MEMORY_GPU}", "batch")]
    for one in plan.components:
        memory = _memory(plan, one)
        batch = memory["batch"] if memory["weights"] else None
        rows.append(
            (
                one.name, one.repository, size(plan.downloads[one.repository]), size(memory["weights"]), one.dtype,
                size(memory["working"]), "tokens" if one.is_text_encoder else str(batch or "unknown"),
            )
        )  # fmt: skip
    total = sum(held or 0 for held in plan.downloads.values())
    unknown = sorted(name for name, held in plan.downloads.items() if held is None)
    lacking = f" and {', '.join(unknown)}, whose size is not known" if unknown else ""
    return f"{table_text(rows)}\nTo download, where none is there yet: {size(total)}{lacking}."


def _stored(plan: ComputedPlan, download: int) -> str:
    kinds: dict[str, tuple[int, int]] = {}
    for one in plan.stored:
        items, held = kinds.get(one.what, (0, 0))
        kinds[one.what] = items + one.items, held + one.bytes
    rows = [("kept on disk", "items", "at most")]
    rows += [(what, f"{items:,}", size(held)) for what, (items, held) in kinds.items()]
    rows.append(("all", "", size(sum(held for _, held in kinds.values()))))
    data = f"\nThe data itself is another download of {size(download)}." if download else ""
    return table_text(rows) + data


def _memory(plan: ComputedPlan, one: Component) -> dict[str, Any]:
    gpu, positions = GPUS[MEMORY_GPU], plan.positions(one)
    if one.size is None:
        return {"download": None, "parameters": None, "weights": None, "working": None, "batch": None, "source": ""}
    batch = one.batch_on(gpu, positions)
    return {
        "download": one.size.download_bytes,
        "parameters": one.size.parameters,
        "weights": one.weights,
        "working": one.working(batch, positions),
        "batch": batch,
        "source": one.size.source,
    }


def _known(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def size(held: int | None) -> str:
    """Bytes to read.

    >>> size(None), size(512), size(88_000_000), size(15_134_590_976)
    ('unknown', '512 B', '88 MB', '15.1 GB')
    """
    if held is None:
        return "unknown"
    units: Sequence[tuple[int, str]] = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
    for unit, name in units:
        if held >= unit:
            return f"{held / unit:.1f} {name}" if held < 100 * unit and unit > 10**6 else f"{held / unit:.0f} {name}"
    return f"{held} B"
