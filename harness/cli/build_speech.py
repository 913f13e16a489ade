"""The part of `squtr build` that builds paired speech."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .common import bars, counting, say, say_json

CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise")
"""What is built where neither an option nor a benchmark says so."""


def build_speech(
    arguments: argparse.Namespace,
    source: str,
    *,
    workers: int = 0,
    engine: str = "threads",
    ray_address: str | None = None,
    **options: Any,
) -> int:
    """Build, and say where it went. `options` are those of `open_recipe`."""
    from ...loaders.build import build, count_clips
    from ...loaders.engines import load_engine
    from ...loaders.home import data_folder
    from ...loaders.recipe import open_recipe

    options = {"conditions": CONDITIONS} | options
    if arguments.benchmark:
        options["benchmark"] = arguments.benchmark
    opened = open_recipe(source, **options)
    runner = load_engine(engine, workers=workers, ray_address=ray_address)
    out: Path = arguments.out or data_folder(*filter(None, [arguments.benchmark]))
    total = count_clips(opened)
    with bars() as show:
        manifest = build(opened, out, workers=workers, progress=counting(show, "building clips", total), engine=runner)
    size = sum(shard.bytes for shard in manifest.shards)
    if arguments.json:
        say_json(
            {
                "folder": str(out),
                "recipe_fingerprint": manifest.recipe_fingerprint,
                "clips": total,
                "shards": len(manifest.shards),
                "bytes": size,
            }
        )
        return 0
    first = next(iter(manifest.subsets.values()))
    say(f"Built {total:,} clips ({size / 1e6:.1f} MB, {len(manifest.shards)} files) into {out}.")
    say(f'Load: datasets.load_dataset("{out}", "{first}_{manifest.conditions[0]}", split="test")')
    say(f"Evaluate: squtr evaluate 'faster-whisper:whisper-base + bm25' --data {out} --out results")
    return 0
