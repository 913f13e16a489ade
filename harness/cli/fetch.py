"""Fetch recorded noise, room impulse responses (RIRs) or a published set of questions. Without NAME: list what there
is, with licenses.

A stopped download continues. Without a network the command says which files to get from where and where to put them.
The audio of questions comes from its publishers' addresses; what cannot be had any more is recorded file by file and
counted as coverage. Fetch what you may use.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Bars, Extend, check_options, note, say, say_json

if TYPE_CHECKING:
    from ...loaders.banks.catalog import BankSpec, Kind

EXAMPLE = """example:
  squtr fetch noise
  squtr fetch noise demand
  squtr build --noise demand+noisex --out data
  squtr fetch questions escucha --limit 20
  squtr fetch questions --table my-set/questions.jsonl --to my-set
"""

QUESTIONS = "questions"
_BANK_OPTIONS = ("variant",)
OPTIONS = {"noise": _BANK_OPTIONS, "rirs": _BANK_OPTIONS, QUESTIONS: ("table", "field", "limit", "again", "ffmpeg")}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="noise, rirs or questions")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="what to fetch; without it, all are listed")
    parser.add_argument("--to", type=Path, metavar="DIR", help="another folder ($SQUTR_HOME/banks/NAME, …/NAME)")
    parser.add_argument("--url", default="", metavar="BASE", help="another place that holds the same files")
    parser.add_argument("--json", action="store_true", help="print one JSON object about what is there")
    banks = parser.add_argument_group("noise and rirs", argument_default=argparse.SUPPRESS)
    banks.add_argument("--variant", metavar="NAME", help="another choice of files, for example 16k")
    questions = parser.add_argument_group("questions", argument_default=argparse.SUPPRESS)
    questions.add_argument("--table", type=Path, metavar="FILE", help="a table of questions (the published one)")
    questions.add_argument(
        "--field", action=Extend, nargs="+", metavar="SPELLING=FIELD", help="what a column means; - leaves it out"
    )
    questions.add_argument("--limit", type=int, metavar="N", help="the most audio files to look at; 0: all (0)")
    questions.add_argument("--again", action="store_true", help="also try what was refused for good")
    questions.add_argument("--ffmpeg", metavar="PATH", help="ffmpeg, for formats that need it (the system's)")


def run(arguments: argparse.Namespace) -> int:
    from ...errors import unknown_name

    if arguments.kind not in OPTIONS:
        raise unknown_name("kind of data", arguments.kind, OPTIONS)
    given = check_options(arguments, OPTIONS, arguments.kind, f"`squtr fetch {arguments.kind}`")
    if arguments.kind == QUESTIONS:
        return _questions(arguments, **given)
    return _bank(arguments, "noise" if arguments.kind == "noise" else "rirs", **given)


def _bank(arguments: argparse.Namespace, kind: Kind, variant: str = "") -> int:
    from ...errors import FetchError, HubError, UsageError, unknown_name
    from ...loaders.banks import NOISE_BANKS, RIR_BANKS
    from ...loaders.banks.catalog import CATALOG, bank_folder
    from ...loaders.banks.fetch import fetch_bank, where_from

    specs = {name: spec for name, spec in CATALOG.items() if spec.kind == kind}
    if not arguments.name:
        return _list(specs, as_json=arguments.json)
    embedded = NOISE_BANKS if kind == "noise" else RIR_BANKS
    if arguments.name in embedded:
        raise UsageError(f"the bank {arguments.name!r} is part of squtr.", hint="Use it as it is.")
    if arguments.name not in specs:
        raise unknown_name(f"bank of {kind}", arguments.name, specs)
    spec = specs[arguments.name]
    folder = arguments.to.expanduser() if arguments.to else bank_folder(spec.name)
    note(f"{spec.title}. License: {spec.license}. {spec.license_note}")
    try:
        with _Bar() as bar:
            fetched = fetch_bank(spec, folder, variant=variant, base_url=arguments.url, progress=bar)
    except (FetchError, HubError):
        note(where_from(spec, folder, variant, arguments.url))
        raise
    name = spec.name if folder == bank_folder(spec.name) else f"{spec.name}:{folder}"
    note("Reading every file once for its checksum …")
    number, families, version = _contents(kind, name)
    if arguments.json:
        say_json(
            {
                "bank": name,
                "kind": kind,
                "folder": str(folder),
                "license": spec.license,
                "version": version,
                "recordings": number,
                "families": families,
                "fetched_now": list(fetched.new),
                "files": [
                    {"name": f.name, "url": f.url, "bytes": f.bytes, "sha256": f.sha256, "checked": f.checked}
                    for f in fetched.files
                ],
            }
        )
        return 0
    for file in fetched.files:
        if file.name in fetched.new and not file.checked:
            note(f"{file.name}: no checksum is published; its sha256 is {file.sha256}, recorded in {folder}.")
    of_families = f" in {len(families)} families" if len(families) > 1 else ""
    what = "noises" if kind == "noise" else "RIRs"
    say(f"{name}: {number} {what}{of_families} in {folder}, version {version}, license {spec.license}.")
    say(f"Use: squtr build --{kind} {name}")
    return 0


def _questions(
    arguments: argparse.Namespace,
    *,
    table: Path | None = None,
    field: list[str] | None = None,
    limit: int = 0,
    again: bool = False,
    ffmpeg: str = "",
) -> int:
    from ...errors import UsageError, unknown_name
    from ...loaders.home import data_folder
    from ...loaders.questions.data import read_taught, write_taught
    from ...loaders.questions.fetching import fetch_audio, fetch_table, wanted_of
    from ...loaders.questions.fields import fields_of
    from ...loaders.questions.reading import read_questions
    from ...loaders.questions.statuses import STATUSES, coverage_of
    from ...loaders.questions.yt_dlp import YtDlp, find_ffmpeg
    from ...loaders.sources.published_questions import PUBLISHED_QUESTIONS

    name = arguments.name
    if not name and table is None:
        for row in PUBLISHED_QUESTIONS.values():
            say(f"{row.name:<10} {row.title}")
            say(f"{'':<10} License: {row.license}. {row.home}")
        return 0
    if name and name not in PUBLISHED_QUESTIONS:
        raise unknown_name("set of questions", name, PUBLISHED_QUESTIONS)
    if limit < 0:
        raise UsageError(f"the limit is {limit}.", hint="Give the number of audio files, or 0 for all.")
    folder: Path = (arguments.to or data_folder(name or QUESTIONS)).expanduser()
    given = fields_of(field or [])
    path = fetch_table(folder, PUBLISHED_QUESTIONS.get(name), table, arguments.url)
    questions = read_questions(path, extra={**read_taught(folder), **given})
    if given:
        write_taught(folder, given)
    wanted = wanted_of(questions)
    if not wanted:
        raise UsageError(f"{path} has no addresses.", hint="Its questions need a source_url.")
    tool = YtDlp()
    note(f"{len(questions):,} questions, {len(wanted):,} audio files with an address. {tool.name}, into {folder}.")
    with Bars() as show:
        report = fetch_audio(
            wanted[: limit or None],
            folder,
            tool,
            ffmpeg=find_ffmpeg(ffmpeg),
            again=again,
            progress=lambda done, total, _: show("fetching audio", done, total),
        )
    coverage = coverage_of(questions, {id_: status.status for id_, status in report.statuses.items()})
    if arguments.json:
        say_json(
            {
                "folder": str(folder),
                "table": str(path),
                "audio": report.counts,
                "new": len(report.new),
                "items": coverage.items,
                "covered": coverage.covered,
                "missing": {id_: {"audio": audio, "status": why} for id_, (audio, why) in coverage.missing.items()},
            }
        )
        return 0
    for status, count in report.counts.items():
        say(f"{status:<15} {count:>6,}  {STATUSES[status]}")
    say(f"{coverage.covered:,} of {coverage.items:,} questions have their audio; {len(report.new):,} files are new.")
    say(f'Load: squtr.load_dataset("questions", source="{folder if arguments.to or not name else name}")')
    return 0


def _contents(kind: Kind, name: str) -> tuple[int, list[str], str]:
    """How many recordings, which families, and the version."""
    from ...loaders.banks import load_noise_bank, load_rir_bank

    if kind == "rirs":
        rirs = load_rir_bank(name)
        return len(rirs.rirs()), [], rirs.version
    noises = load_noise_bank(name)
    infos = noises.noises()
    return len(infos), sorted({info.family for info in infos}), noises.version


def _list(specs: dict[str, BankSpec], *, as_json: bool) -> int:
    from ...loaders.banks.catalog import bank_folder

    if as_json:
        say_json(
            [
                {
                    "name": spec.name,
                    "title": spec.title,
                    "license": spec.license,
                    "license_note": spec.license_note,
                    "homepage": spec.homepage,
                    "folder": str(bank_folder(spec.name)),
                    "layout": spec.layout,
                    "variants": list(spec.variants),
                    "is_there": bank_folder(spec.name).is_dir(),
                }
                for spec in specs.values()
            ]
        )
        return 0
    for spec in specs.values():
        say(f"{spec.name:<10} {spec.title}")
        say(f"{'':<10} {spec.license}. {spec.license_note}")
        say(f"{'':<10} {spec.homepage}")
        say(f"{'':<10} {'in' if bank_folder(spec.name).is_dir() else 'goes to'} {bank_folder(spec.name)}")
    return 0


class _Bar:
    """Progress of downloads on stderr in bytes, one bar per file, off when stderr is not a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._name = ""

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        from tqdm import tqdm

        if name != self._name:
            if self._bar is not None:
                self._bar.close()
            self._name = name
            self._bar = tqdm(
                total=total or None,
                desc=name,
                file=sys.stderr,
                disable=not sys.stderr.isatty(),
                unit="B",
                unit_scale=True,
            )
        if not self._bar.disable:
            self._bar.update(done - self._bar.n)
