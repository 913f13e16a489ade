"""Check results as a leaderboard does before it takes them.

Without options, the files (or folders) are checked: form, hashes, coverage, what must hold for the numbers, and whether
the records beside a result give its scores. --base also checks what was added to a store, as against an older copy of
it; --requests checks the open pull requests of a data set on the Hub, and can answer and merge them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import EXIT_FAILED, DataError, UsageError
from ...harness.tasks.verification import Judgments
from ...loaders.hub.repository import Repository, Request
from ..changes import compare_folders, validate_change, validate_request
from ..markdown import plain
from ..submit import find_results
from ..validate import Validation, validate_files
from .common import note, say, say_json, say_validations

EXAMPLE = """example:
  squtr validate run                                     # what `squtr evaluate --out run` wrote
  squtr validate run --qrels beir                        # metrics again, from documents and `squtr export beir`
  squtr validate store --base store-before               # what a change adds to a store
  squtr validate --requests ORG/squtr-results --comment  # the open pull requests, with an answer under each
"""
_MARK = "squtr validate"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="results, or folders of an evaluation or a store"
    )
    parser.add_argument(
        "--base", type=Path, metavar="DIR", help="an older copy of the store: check what was added since"
    )
    parser.add_argument(
        "--requests", metavar="ORG/NAME", help="check the open pull requests of this data set on the Hub"
    )
    parser.add_argument("--number", type=int, metavar="N", help="only this pull request")
    parser.add_argument("--comment", action="store_true", help="write what was found under each pull request")
    parser.add_argument(
        "--merge", action="store_true", help="merge those in which nothing was found, no warning either"
    )
    parser.add_argument(
        "--qrels", type=Path, metavar="DIR",
        help="judgments, <subset>/qrels/test.tsv (`squtr export beir`): compute metrics again from documents",
    )  # fmt: skip
    parser.add_argument("--no-records", action="store_true", help="do not score the records again")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Check, and return 1 if anything is refused."""
    records = not arguments.no_records
    if arguments.requests:
        if arguments.files or arguments.base or arguments.qrels:
            raise UsageError("--requests checks the Hub, not files.", hint="Leave the files, --base and --qrels out.")
        return _requests(arguments, records=records)
    if arguments.qrels is not None and (arguments.base is not None or arguments.no_records):
        raise UsageError("--qrels is about the records of files.", hint="Leave --base and --no-records out.")
    if arguments.comment or arguments.merge or arguments.number is not None:
        raise UsageError("--comment, --merge and --number are about pull requests.", hint="Add --requests ORG/NAME.")
    if arguments.base is not None:
        if len(arguments.files) != 1 or not arguments.files[0].is_dir() or not arguments.base.is_dir():
            raise UsageError("--base needs two copies of a store.", hint="Write squtr validate STORE --base OLDER.")
        found = validate_change(compare_folders(arguments.base, arguments.files[0]), records=records)
    elif arguments.files:
        qrels = _qrels(arguments.qrels) if arguments.qrels is not None else None
        found = validate_files(find_results(arguments.files), records=records, qrels=qrels)
    else:
        raise UsageError("there is nothing to check.", hint="Name results, a folder, or --requests ORG/NAME.")
    ok = all(validation.ok for validation in found)
    if arguments.json:
        say_json({"ok": ok, "files": [validation.as_json() for validation in found]})
    else:
        say_validations(found)
        refused = sum(not validation.ok for validation in found)
        say(f"{len(found)} checked, {refused} refused." if refused else f"{len(found)} checked, none refused.")
    return 0 if ok else EXIT_FAILED


def _qrels(folder: Path) -> Judgments:
    """The judgments of every subset below `folder`. Raises `DataError` if there are none, or a line is wrong."""
    from ...loaders.sources.beir import qrels_table
    from ...loaders.sources.tables import read_qrels

    found: dict[str, dict[str, dict[str, int]]] = {}
    for path in sorted(folder.glob("*/qrels/test.tsv")):
        grades = found.setdefault(path.parent.parent.name, {})
        for qrel in read_qrels(qrels_table(path)):
            grades.setdefault(qrel.query_id, {})[qrel.document_id] = qrel.score
    if not found:
        raise DataError(
            f"{folder} holds no <subset>/qrels/test.tsv.", hint=f"Write them: squtr export beir DATA --out {folder}."
        )
    return found


def _requests(arguments: argparse.Namespace, *, records: bool) -> int:
    repository = Repository(arguments.requests, waiting=note)
    requests = [
        request for request in repository.requests() if arguments.number is None or request.number == arguments.number
    ]
    told = []
    all_ok = True
    for request in requests:
        # The author may push more while this runs: one commit is checked, and merged only if it is still the last.
        checked = repository.head(request.revision)
        found = validate_request(repository, replace(request, revision=checked), records=records)
        ok = all(validation.ok for validation in found)
        merged = arguments.merge and ok and not any(validation.findings for validation in found)
        all_ok = all_ok and ok
        if arguments.comment:
            repository.comment(request.number, answer(found))
        if merged and repository.head(request.revision) != checked:
            note(f"#{request.number} was changed while it was checked: not merged.")
            merged = False
        if merged:
            repository.merge(request.number)
        told.append(
            {
                "number": request.number,
                "title": request.title,
                "author": request.author,
                "ok": ok,
                "merged": merged,
                "files": [validation.as_json() for validation in found],
            }
        )
        if not arguments.json:
            _say_request(request, found, merged=merged)
    if arguments.json:
        say_json({"ok": all_ok, "requests": told})
    elif not requests:
        say(f"{arguments.requests} has no open pull request.")
    return 0 if all_ok else EXIT_FAILED


def _say_request(request: Request, found: Sequence[Validation], *, merged: bool) -> None:
    say(f"#{request.number} of {request.author}: {request.title}{' (merged)' if merged else ''}")
    say_validations(found)


def answer(found: Sequence[Validation]) -> str:
    """What is written under a pull request, in Markdown.

    >>> answer([Validation(Path("results/x.json"), (), "re-scored")])
    '`squtr validate`: no errors in 1 result.\\n\\n- results/x.json: ok, re-scored from its records\\n'
    """
    refused = sum(not validation.ok for validation in found)
    count = f"{len(found)} result{'s' if len(found) != 1 else ''}"
    head = f"{refused} of {count} cannot be taken." if refused else f"no errors in {count}."
    lines = [f"`{_MARK}`: {head}", ""]
    for validation in found:
        state = "ok" if validation.ok else "refused"
        scored = ", re-scored from its records" if validation.who == "re-scored" else ""
        lines.append(f"- {plain(str(validation.path))}: {state}{scored}")
        lines += [
            f"  - {finding.level}: {plain(finding.where)}: {plain(finding.message)}" for finding in validation.findings
        ]
    return "\n".join(lines)[:60_000] + "\n"
