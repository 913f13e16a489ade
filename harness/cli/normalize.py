"""Normalize text as the scores do: lines in on standard input, as many lines out. The text is UTF-8."""

from __future__ import annotations

import argparse
import sys

from .score import add_normalizer_options, normalizer_from

EXAMPLE = """example:
  echo '¿Treinta y seis años?' | squtr normalize --language es
  squtr normalize --language zh --script strict < hyps.txt > hyps.normalized.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language", required=True, metavar="LANG", help="code of the language, for example en, zh, es"
    )
    parser.add_argument(
        "--normalizer", default="default", metavar="NAME", help="default, raw, whisper or squtr-compat (default)"
    )
    add_normalizer_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from ...errors import DataError

    normalizer = normalizer_from(arguments)
    sys.stdout.flush()
    out = sys.stdout.buffer
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            out.flush()
            raise DataError(
                f"standard input, line {number}: byte 0x{raw[error.start]:02x} is not UTF-8.",
                hint="Convert the text to UTF-8.",
            ) from error
        # A normalized text is one line, whatever line separators it held.
        out.write(" ".join(normalizer(text.rstrip("\r\n")).splitlines()).encode("utf-8") + b"\n")
    out.flush()
    return 0
