"""Submit results to a leaderboard: `squtr submit RESULT… --to ORG/squtr-results`, as a mode of `squtr submit`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ...errors import EXIT_FAILED, DataError, UsageError
from ...loaders.hub.repository import Repository, Sent
from ..eval_results import EvalResults, prepare_eval_results, send_eval_results
from ..store import is_folder
from ..stored import About, check_note, first_problem
from ..strict_json import read_object
from ..submit import Delivery, Submission, main_score, prepare, send
from .common import note, say, say_json, say_validations

_ABOUT = TypeAdapter(list[About])
_MOST_SHOWN = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options that only this mode has."""
    group = parser.add_argument_group("to a leaderboard")
    group.add_argument("--no-records", action="store_true", help="send the numbers only; they stand as self-reported")
    group.add_argument(
        "--about", type=Path, metavar="FILE",
        help='what the results do not say of the models, as JSON: {"models": [{"role": "transcriber", "link": "https://…",'
        ' "parameters": 72593920, "open_weights": true}]}',
    )  # fmt: skip
    group.add_argument("--note", default="", metavar="TEXT", help="a few words to whoever reads the results")
    group.add_argument("--direct", action="store_true", help="commit, where you may, and open no pull request")
    group.add_argument(
        "--eval-results", action="store_true",
        help="also offer the values to the model's own repository, in the Hub's format; for systems with one model",
    )  # fmt: skip
    group.add_argument(
        "--data-set", default="", metavar="ORG/NAME", help="the benchmark on the Hub, for --eval-results"
    )


def run(arguments: argparse.Namespace, files: Sequence[Path]) -> int:
    """Check, show, and with --yes send."""
    if not files:
        raise UsageError("no result is named.", hint="Write squtr submit RESULT… --to ORG/squtr-results.")
    if not arguments.to:
        raise UsageError("no leaderboard is named.", hint="Add --to ORG/squtr-results, or --to and a folder.")
    if arguments.direct and is_folder(arguments.to):
        raise UsageError("--direct is about the Hub.", hint="Leave it out: a folder is written at once.")
    check_note(arguments.note)
    submission, validations = prepare(
        files, records=not arguments.no_records, about=_about(arguments.about), note=arguments.note
    )
    refused = [validation for validation in validations if not validation.ok]
    if refused:
        if arguments.json:
            say_json({"ok": False, "sent": None, "files": [validation.as_json() for validation in validations]})
        else:
            say_validations(refused)
            say(f"{len(refused)} of {len(validations)} results cannot be submitted. Nothing was sent.")
        return EXIT_FAILED
    native = (
        prepare_eval_results(
            [parcel.stored for parcel in submission.parcels],
            data_set=arguments.data_set,
            results="" if is_folder(arguments.to) else arguments.to,
        )
        if arguments.eval_results
        else []
    )
    if not arguments.json:
        _show(submission, arguments.to, native)
    delivery = send(submission, arguments.to, direct=arguments.direct, waiting=note) if arguments.yes else None
    written = (
        [send_eval_results(own, Repository(own.model, "model", waiting=note)) for own in native] if delivery else []
    )
    if arguments.json:
        say_json(_as_json(submission, delivery, native, written))
    elif delivery is None:
        say("Nothing was sent. Add --yes to send it.")
    else:
        _tell(delivery, written)
    return 0


def _about(path: Path | None) -> list[About]:
    if path is None:
        return []
    found: Mapping[str, Any] = read_object(path)
    try:
        return _ABOUT.validate_python(found.get("models"), strict=True)
    except ValidationError as error:
        raise DataError(
            f"{path} does not say what models are: {first_problem(error)}.", hint='Write {"models": [{"role": …}]}.'
        ) from error


def _show(submission: Submission, place: str, native: Sequence[EvalResults]) -> None:
    for parcel in submission.parcels[:_MOST_SHOWN]:
        name, value, n = main_score(parcel.validation.result)
        records = f"{parcel.stored.items.rows} records" if parcel.stored.items else "no records"
        say(f"{parcel.stored.system}, {parcel.stored.config}: {name} {value}, n = {n}, {records}")
    if len(submission.parcels) > _MOST_SHOWN:
        say(f"and {len(submission.parcels) - _MOST_SHOWN} more")
    for parcel, finding in submission.warnings:
        say(f"  {parcel.stored.system}, {parcel.stored.config}: {finding}")
    files = submission.files
    size = sum(map(len, files.values())) / 1e6
    if any(parcel.items for parcel in submission.parcels):
        say(
            "The records hold reference texts and the system's outputs: send them only if you may publish them, or"
            " leave them out with --no-records."
        )
    say(f"To {place}: {len(files)} files ({size:.1f} MB), as “{submission.title}”.")
    for own in native:
        say(f"To the model {own.model}: {len(own.entries)} values in .eval_results/squtr.yaml.")


def _tell(delivery: Delivery, written: Sequence[Sent]) -> None:
    if delivery.there:
        say(f"{len(delivery.there)} of these results were there already, the first at {delivery.there[0]}.")
    sent = delivery.request
    if sent is not None and sent.url:
        say(f"Opened a pull request: {sent.url}" if sent.opened else f"A pull request with these is open: {sent.url}")
    elif delivery.added:
        say(f"Added {len(delivery.added)} files to {delivery.place}.")
    for own in written:
        if own.url:
            say(f"On the model {own.repository}: {own.url}")
        else:
            say(f"The model {own.repository} has these values already.")


def _as_json(
    submission: Submission, delivery: Delivery | None, native: Sequence[EvalResults], written: Sequence[Sent]
) -> dict[str, Any]:
    return {
        "ok": True,
        "title": submission.title,
        "files": [{"path": path, "bytes": len(content)} for path, content in submission.files.items()],
        "warnings": [
            {"system": parcel.stored.system, "config": parcel.stored.config, "message": str(finding)}
            for parcel, finding in submission.warnings
        ],
        "eval_results": [{"model": own.model, "content": own.content().decode("utf-8")} for own in native],
        "sent": asdict(delivery) if delivery else None,
        "eval_results_sent": [asdict(sent) for sent in written],
    }
