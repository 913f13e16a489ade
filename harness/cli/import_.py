"""Read what another tool wrote. `squtr import FORMAT --help` has the options.

Results of mteb are aggregates: without intervals and records, and marked as imported. TREC runs, transcripts in JSON
lines, TRN and CTM, and folders of BEIR need no import: `trec:`, `transcripts:` and `beir:` read them as they are.
"""

from __future__ import annotations

import argparse

from .exchange import add_formats, run_format

EXAMPLE = """example:
  squtr import mteb ~/.cache/mteb --out run
  squtr import transcripts exp/decode/text --format kaldi --condition clean --out asr.jsonl
  squtr evaluate 'transcripts:asr.jsonl + bm25' --data data --configs en_clean --out run
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_formats(parser, "import")


def run(arguments: argparse.Namespace) -> int:
    return run_format(arguments, "import")
