"""Write results, or the texts of a data set, as other tools read them. `squtr export FORMAT --help` has the options."""

from __future__ import annotations

import argparse

from .exchange import add_formats, run_format

EXAMPLE = """example:
  squtr evaluate 'whisper-base + bm25' --data data --out run
  squtr export trec run --out trec                              # trec/<system>/<subset>_<condition>.trec
  squtr export transcripts run --out asr                        # asr/<system>/<subset>_<condition>.jsonl
  squtr export transcripts run --out asr --format trn           # for sclite
  squtr export beir data --out beir                             # beir/<subset>/corpus.jsonl, queries.jsonl, qrels/
  squtr export mteb run --out for-mteb                          # for mteb.ResultCache
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_formats(parser, "export")


def run(arguments: argparse.Namespace) -> int:
    return run_format(arguments, "export")
