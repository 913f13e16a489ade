"""Build the data of the benchmark rir_mega: the same utterances, clean and in a room. A stopped build continues."""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import bars, counting, say, say_json

EXAMPLE = """examples:
  squtr build rir_mega --speech librispeech:test-clean --rooms rir_mega:train --pairs 2000 --out whisper-rir-mega
  squtr build rir_mega --speech mini --languages es --rooms simulated --rooms-per-utterance 4 --out rooms-es
  python -c "from datasets import load_dataset; print(load_dataset('rooms-es', 'paired', split='test'))"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    speech = parser.add_argument_group("speech")
    speech.add_argument(
        "--speech",
        default="mini",
        metavar="NAME",
        help="librispeech:test-clean (the Hub), librispeech:FOLDER?part=test-clean, recorded:PATH?language=de, or any"
        " other source that has speech (mini)",
    )
    speech.add_argument("--languages", nargs="+", metavar="LANG", help="languages to take, for example en zh (all)")
    speech.add_argument("--subsets", nargs="+", metavar="SUBSET", help="subsets to take (all)")
    rooms = parser.add_argument_group("rooms")
    rooms.add_argument(
        "--rooms",
        default="simulated",
        metavar="NAME",
        help="rir_mega:train (after `squtr fetch rooms rir_mega`), simulated, or a folder of impulse responses,"
        " where rooms.csv (file,room) may say which are of one room (simulated)",
    )
    rooms.add_argument(
        "--channel", type=int, metavar="N", help="the channel of responses that have several, from 0 (refuse them)"
    )
    rooms.add_argument(
        "--stratify", default="rt60", metavar="HOW", help="rt60, or rt60+drr: what rooms are grouped by (rt60)"
    )
    rooms.add_argument("--rt60-bins", type=int, default=5, metavar="N", help="bins of RT60, by quantiles (5)")
    rooms.add_argument("--drr-bins", type=int, default=5, metavar="N", help="bins of DRR, by quantiles (5)")
    rooms.add_argument(
        "--known-rooms-only", action="store_true", help="leave out rooms of which RT60 or DRR cannot be measured"
    )
    pairs = parser.add_argument_group("pairs")
    pairs.add_argument("--pairs", type=int, default=0, metavar="N", help="pairs to make; 0: every utterance (0)")
    pairs.add_argument(
        "--rooms-per-utterance", type=int, default=1, metavar="N", help="rooms that each utterance is heard in (1)"
    )
    pairs.add_argument("--early-only", action="store_true", help="keep the first 50 ms of each response alone")
    pairs.add_argument("--noise-snr", type=float, metavar="DB", help="add noise after the room, at this level (none)")
    pairs.add_argument("--noise", default="synthetic", metavar="NAME", help="the noise bank or folder (synthetic)")
    pairs.add_argument(
        "--level", default="whole", metavar="RULE", help="whole or active: what the noise is set against (whole)"
    )
    pairs.add_argument("--seed", type=int, default=0, metavar="N", help="the seed of every draw (0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write ($SQUTR_HOME/rir_mega)")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="threads; 0: one per core (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what was built")


def run(arguments: argparse.Namespace) -> int:
    """Build, and say where it went."""
    from ...loaders.home import rir_mega_folder
    from ...loaders.rir_mega.build import build_pairs, count_pairs
    from ...loaders.rir_mega.recipe import open_pair_kitchen

    out = arguments.out or rir_mega_folder()
    with bars() as show:
        kitchen = open_pair_kitchen(
            arguments.speech,
            arguments.rooms,
            pairs=arguments.pairs,
            rooms_per_utterance=arguments.rooms_per_utterance,
            languages=arguments.languages,
            subsets=arguments.subsets,
            stratify=arguments.stratify,
            rt60_bins=arguments.rt60_bins,
            drr_bins=arguments.drr_bins,
            known_rooms_only=arguments.known_rooms_only,
            early_only=arguments.early_only,
            noise_snr=arguments.noise_snr,
            noise=arguments.noise,
            level=arguments.level,
            channel=arguments.channel,
            seed=arguments.seed,
            workers=arguments.workers,
            progress=lambda done, total: show("measuring rooms", done, total),
        )
        total = count_pairs(kitchen)
        manifest = build_pairs(
            kitchen, out, workers=arguments.workers, progress=counting(show, "building pairs", total)
        )
    size = sum(shard.bytes for shard in manifest.shards)
    if arguments.json:
        say_json(
            {
                "folder": str(out),
                "recipe_fingerprint": manifest.recipe_fingerprint,
                "pairs": total,
                "splits": {name: split.model_dump() for name, split in manifest.splits.items()},
                "strata": [stratum.model_dump() for stratum in manifest.strata],
                "edges": manifest.edges,
                "shards": len(manifest.shards),
                "bytes": size,
            }
        )
        return 0
    shares = ", ".join(f"{split.pairs:,} {name}" for name, split in manifest.splits.items())
    say(f"Built {total:,} pairs ({shares}; {size / 1e6:.1f} MB, {len(manifest.shards)} files) into {out}.")
    say("Pairs per stratum: " + ", ".join(f"{s.name} {s.pairs:,}" for s in manifest.strata) + ".")
    say(f'Load: datasets.load_dataset("{out}", "paired", split="test")')
    return 0
