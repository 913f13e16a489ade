"""What several commands share: options of a recipe, progress on stderr, output."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ...loaders.conditions import STANDARD_CONDITIONS
from ..progress import Bars, bars, counting

__all__ = ["Bars", "add_recipe_options", "bars", "counting", "note", "say", "say_json"]


def add_recipe_options(parser: argparse.ArgumentParser) -> None:
    """The options that decide a recipe."""
    parser.add_argument(
        "--source",
        default="mini",
        metavar="NAME",
        help="mini, a collection folder, beir:PATH?language=en, mteb:ORG/NAME@COMMIT, release:PATH, recorded:PATH;"
        " ?speech=DIR adds recordings to texts (mini)",
    )
    parser.add_argument("--languages", nargs="+", metavar="LANG", help="languages to take, for example en zh (all)")
    parser.add_argument("--subsets", nargs="+", metavar="SUBSET", help="subsets to take (all)")
    parser.add_argument(
        "--conditions",
        nargs="+",
        metavar="COND",
        default=["clean", "low_noise", "medium_noise", "high_noise"],
        help=f"{', '.join(STANDARD_CONDITIONS)}, or any level as snr_-5, reverb_snr_5"
        " (clean low_noise medium_noise high_noise)",
    )
    parser.add_argument("--noise", default="synthetic", metavar="BANK", help="noise bank or folder (synthetic)")
    parser.add_argument("--rooms", default="simulated", metavar="BANK", help="room bank or folder (simulated)")
    parser.add_argument("--channel", type=int, metavar="N", help="channel (from 0) of recordings that have several")
    parser.add_argument(
        "--level", default="whole", metavar="LEVEL", help="SNR over the whole clip or active speech (whole)"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="queries per subset, stratified; 0: all (0)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every keyed draw (0)")


def say(text: str) -> None:
    """Print a line of output."""
    print(text)  # noqa: T201


def note(text: str) -> None:
    """Print a line about what is happening, on stderr."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def say_json(value: Any) -> None:
    """Print one JSON object."""
    print(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))  # noqa: T201
