"""Fetch the questions of ESCUCHA and the sound that they are about, from its publishers' addresses. A stopped run
continues; what cannot be had any more is recorded per sound and counted as coverage.

ESCUCHA states no license, and its sound belongs to those who published it. Fetch what you may use.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .common import bars, note, say, say_json

EXAMPLE = """examples:
  squtr fetch escucha
  squtr fetch escucha --questions my-set/questions.jsonl --to my-set
  squtr fetch escucha --limit 20 --again
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--to", type=Path, metavar="DIR", help="the folder to fill ($SQUTR_HOME/escucha)")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="the table of questions (the published one)")
    parser.add_argument("--url", default="", metavar="BASE", help="another place that holds the published table")
    parser.add_argument(
        "--field", action="append", default=[], metavar="SPELLING=FIELD", help="what a column means; - leaves it out"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the most sounds to look at; 0: all (0)")
    parser.add_argument("--again", action="store_true", help="also try what was refused for good")
    parser.add_argument("--ffmpeg", default="", metavar="PATH", help="ffmpeg, for formats that need it (the system's)")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what is there")


def run(arguments: argparse.Namespace) -> int:
    """Fetch, and say what is there and what is not."""
    from ...errors import UsageError
    from ...loaders.home import escucha_folder
    from ...loaders.questions.data import read_taught, write_taught
    from ...loaders.questions.fields import fields_of
    from ...loaders.questions.reading import read_questions
    from ...loaders.questions.statuses import STATUSES, coverage_of
    from ...loaders.sources.escucha.fetching import REPOSITORY, fetch_audio, fetch_table, wanted_of
    from ...loaders.sources.escucha.yt_dlp import YtDlp, find_ffmpeg

    if arguments.limit < 0:
        raise UsageError(f"the limit is {arguments.limit}.", hint="Give the number of sounds, or 0 for all.")
    folder: Path = (arguments.to or escucha_folder()).expanduser()
    given = fields_of(arguments.field)
    table = fetch_table(folder, arguments.questions, arguments.url or REPOSITORY)
    questions = read_questions(table, extra={**read_taught(folder), **given})
    if given:
        write_taught(folder, given)
    wanted = wanted_of(questions)
    if not wanted:
        raise UsageError(f"{table} has no addresses.", hint="Its questions need a source_url.")
    tool = YtDlp()
    note(f"{len(questions):,} questions, {len(wanted):,} sounds with an address. {tool.name}, into {folder}.")
    with bars() as show:
        report = fetch_audio(
            wanted[: arguments.limit or None],
            folder,
            tool,
            ffmpeg=find_ffmpeg(arguments.ffmpeg),
            again=arguments.again,
            progress=lambda done, total, _: show("fetching sound", done, total),
        )
    coverage = coverage_of(questions, {id_: status.status for id_, status in report.statuses.items()})
    if arguments.json:
        say_json(
            {
                "folder": str(folder),
                "table": str(table),
                "sounds": report.counts,
                "new": len(report.new),
                "items": coverage.items,
                "covered": coverage.covered,
                "missing": {id_: {"audio": audio, "status": why} for id_, (audio, why) in coverage.missing.items()},
            }
        )
        return 0
    for status, count in report.counts.items():
        meaning = next(said for name, said in STATUSES.items() if name == status)
        say(f"{status:<15} {count:>6,}  {meaning}")
    say(f"{coverage.covered:,} of {coverage.items:,} questions can be asked; {len(report.new):,} sounds are new.")
    say('Load: squtr.load_dataset("escucha")' + (f', source="{folder}"' if arguments.to else ""))
    return 0
