"""Build a paired data set into a folder that `datasets.load_dataset` reads. A stopped build continues."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import add_recipe_options, bars, counting, say, say_json

EXAMPLE = """example:
  squtr build --source mini --languages en zh --conditions clean high_noise reverb_medium_noise --out data
  python -c "from datasets import load_dataset; print(load_dataset('data', 'zh_high_noise', split='test'))"

`squtr build rir_mega --help` is about the benchmark rir_mega: the same utterances, clean and in a room.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_recipe_options(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write ($SQUTR_HOME/squtr)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="threads; 0: one per core (0)")
    parser.add_argument("--engine", default="threads", metavar="NAME", help="threads, or ray for a cluster (threads)")
    parser.add_argument("--ray-address", metavar="ADDR", help="the Ray cluster (the running one, or a local one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what was built")


def run(arguments: argparse.Namespace) -> int:
    """Build, and say where it went."""
    from ...loaders.build import build, count_clips
    from ...loaders.engines import load_engine
    from ...loaders.home import default_dataset_folder
    from ...loaders.recipe import open_kitchen

    kitchen = open_kitchen(
        arguments.source,
        conditions=arguments.conditions,
        languages=arguments.languages,
        subsets=arguments.subsets,
        noise=arguments.noise,
        rooms=arguments.rooms,
        channel=arguments.channel,
        seed=arguments.seed,
        level=arguments.level,
        limit=arguments.limit,
    )
    engine = load_engine(arguments.engine, workers=arguments.workers, ray_address=arguments.ray_address)
    out = arguments.out or default_dataset_folder()
    total = count_clips(kitchen)
    with bars() as show:
        manifest = build(
            kitchen, out, workers=arguments.workers, progress=counting(show, "building clips", total), engine=engine
        )
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
