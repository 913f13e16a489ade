"""The part of `squtr build` that builds paired speech."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import UsageError
from .common import Bars, counting, say, say_json

CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise")
"""What is built where neither an option nor a benchmark says so."""


def noise_by_place(given: Sequence[str]) -> str | dict[str, str]:
    """The banks of `--noise BANK` or `--noise PLACE=BANK …`, a place being a subset or a language.

    >>> noise_by_place(["demand"]), noise_by_place(["en=synthetic?family=babble", "demand"])
    ('demand', {'en': 'synthetic?family=babble', '': 'demand'})
    """
    found: dict[str, str] = {}
    for text in given:
        match = re.match(r"([\w.-]+)=(?=.)", text)
        place, bank = (match[1], text[match.end() :]) if match else ("", text)
        if place in found:
            what = f"for {place!r} " if place else ""
            raise UsageError(f"the noise {what}is given twice.", hint="Join banks with '+': demand+noisex.")
        found[place] = bank
    return found[""] if list(found) == [""] else found


def build_speech(
    arguments: argparse.Namespace,
    source: str | Sequence[str],
    *,
    workers: int = 0,
    engine: str = "threads",
    ray_address: str | None = None,
    noise: Sequence[str] = (),
    add: bool = False,
    **options: Any,
) -> int:
    from ...loaders.adding import options_to_add
    from ...loaders.build import build, count_clips
    from ...loaders.engines import load_engine
    from ...loaders.home import data_folder
    from ...loaders.origins import origins
    from ...loaders.recipe import open_recipe
    from ..benchmarks import BENCHMARKS

    runner = load_engine(engine, workers=workers, ray_address=ray_address)
    if noise:
        options["noise"] = noise_by_place(noise)
    out: Path = arguments.out or data_folder(*filter(None, [arguments.benchmark]))
    given: dict[str, Any] = {"source": source, "conditions": CONDITIONS, "benchmark": arguments.benchmark, **options}
    if add:
        given |= options_to_add(out, source, options)
    with Bars() as show:
        opened = open_recipe(**given, workers=workers, progress=lambda done, total: show("measuring RIRs", done, total))
        total = count_clips(opened)
        told = counting(show, "building clips", total)
        manifest = build(opened, out, add=add, workers=workers, progress=told, engine=runner)
    size = sum(shard.bytes for shard in manifest.shards)
    if arguments.json:
        say_json(
            {
                "folder": str(out),
                "recipe_fingerprint": manifest.recipe_fingerprint,
                "clips": sum(shard.rows for shard in manifest.below("queries")),
                "splits": manifest.splits,
                "strata": [stratum.model_dump() for stratum in manifest.strata],
                "edges": manifest.edges,
                "left_out": [asdict(entry) for entry in manifest.left_out],
                "shards": len(manifest.shards),
                "bytes": size,
            }
        )
        return 0
    first, split = next(iter(manifest.subsets.values())), manifest.splits[-1]
    clips = sum(shard.rows for shard in manifest.below("queries"))
    say(f"Built {clips:,} clips ({size / 1e6:.1f} MB, {len(manifest.shards)} files) into {out}.")
    for stratum in manifest.strata:
        say(f"{stratum.name}: {stratum.rirs:,} RIRs, {sum(stratum.pairs.values()):,} pairs of an utterance and a RIR.")
    taken = [f"{origin.split} of {origin.name}" for origin in origins(manifest.recipe) if origin.split]
    if taken:
        say(f"Texts: the split {', '.join(taken)}.")
    for entry in manifest.left_out:
        say(f"Left out: {entry}.")
    say(f'Load: datasets.load_dataset("{out}", "{first}_{manifest.conditions[0]}", split="{split}")')
    searched = any(shard.path.startswith("corpus/") for shard in manifest.shards)
    if arguments.benchmark:
        searched = BENCHMARKS[arguments.benchmark].task == "retrieval"
    system = "'whisper-base + bm25'" if searched else "whisper-base"
    say(f"Evaluate: squtr evaluate {system} --data {out} --out results")
    return 0
