"""See whether systems work at all, on a few known clips and texts: before they are scored, or when a score looks odd.

`squtr evaluate` does the same by itself for what it has not seen before. A check takes seconds; what it sees is no
score.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .common import Bars, Extend, say, say_json, table_text
from .evaluate import add_systems, cache_of, overrides_of

if TYPE_CHECKING:
    from ..results.self_check import CheckedComponent, SelfCheck
    from ..self_check.checking import Checker
    from ..systems import System

_WORDS = {
    "wer": "WER",
    "cer": "CER",
    "above_irrelevant": "relevant above irrelevant",
    "level_db": "level in dB",
    "likeness": "correlation of loudness",
}
EXAMPLE = """example:
  squtr check 'whisper-base + bm25'
  squtr check 'whisper-base + dense:multilingual-e5-small' --languages en zh
  squtr check --system systems.yaml --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help="for example 'whisper-base + bm25'")
    parser.add_argument(
        "--system", nargs="+", action=Extend, default=[], metavar="SYSTEM", help="more systems, or spec files"
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        action=Extend,
        default=[],
        metavar="CODE",
        help="languages (those of the calibration that a system supports: en, zh, es)",
    )
    add_systems(parser.add_argument_group("systems"))
    parser.add_argument("--cache", type=Path, metavar="DIR", help="where `squtr evaluate` keeps outcomes ($SQUTR_HOME)")
    parser.add_argument("--no-cache", action="store_true", help="do not keep outcomes for `squtr evaluate`")
    parser.add_argument("--json", action="store_true", help="print one JSON array with an object for each system")


@dataclass(frozen=True, slots=True)
class _Checked:
    """A system in a language; `error` is what a component raised."""

    system: str
    language: str
    check: SelfCheck | None
    causes: dict[str, str]
    error: str = ""

    @property
    def verdict(self) -> str:
        return "failed" if self.check is None else self.check.verdict


def run(arguments: argparse.Namespace) -> int:
    """Exit 0 if all systems passed or are poor, 1 if one failed."""
    from ...errors import EXIT_FAILED
    from ..evaluation.store import Store
    from ..self_check.calibration import LANGUAGES
    from ..self_check.checking import Checker
    from ..systems import check_systems, load_systems

    written = [*arguments.systems, *arguments.system]
    overrides = overrides_of(arguments)
    systems = check_systems(
        load_systems(written, front_ends=arguments.front_end, preset=arguments.preset, options=overrides)
    )
    cache = cache_of(arguments)
    store = None if cache is None else Store(cache)
    with Bars() as show:
        checker = Checker(store, lambda stage, done: show(stage, done, 1), anew=True)
        found = [
            one
            for system in systems
            for language in arguments.languages or [code for code in LANGUAGES if system.supports(code)]
            for one in [_checked(checker, system, language)]
        ]
    if arguments.json:
        say_json([_as_json(one) for one in found])
    else:
        _print(found)
    return EXIT_FAILED if any(one.verdict == "failed" for one in found) else 0


def _checked(checker: Checker, system: System, language: str) -> _Checked:
    from ...errors import SqutrError, StorageError, UsageError

    if not system.supports(language):
        raise UsageError(f"{system.name} does not support {language!r}.", hint="Leave the language out.")
    try:
        return _Checked(system.name, language, checker.system(system, language), checker.causes(system, language))
    except (StorageError, UsageError):
        raise
    except SqutrError as error:
        return _Checked(system.name, language, None, {}, str(error))


def _as_json(one: _Checked) -> dict[str, Any]:
    components = [] if one.check is None else [part.model_dump(mode="json") for part in one.check.components]
    return {
        "system": one.system,
        "language": one.language,
        "verdict": one.verdict,
        "error": one.error,
        "components": [{**part, "cause": one.causes.get(part["role"], "")} for part in components],
    }


def _print(found: list[_Checked]) -> None:
    rows = [["system", "language", "component", "verdict", "measured"]]
    for one in found:
        if one.check is None:
            rows.append([one.system, one.language, "", "failed", one.error])
            continue
        rows += [[one.system, one.language, part.name, part.verdict, _seen(part)] for part in one.check.components]
    say(table_text(rows))
    for one in found:
        for part in one.check.components if one.check is not None else ():
            if part.verdict != "passed":
                cause = one.causes.get(part.role, "")
                say(f"{part.name} in {one.language}: {part.note}." + (f" Likely: {cause}." if cause else ""))


def _seen(part: CheckedComponent) -> str:
    return ", ".join(_measure(*name.partition(" of "), value) for name, value in part.seen.items())


def _measure(name: str, of: str, part: str, value: float) -> str:
    digits = f"{value:.2f}" if value == 0 or abs(value) >= 0.005 else f"{value:.1e}"
    return f"{_WORDS.get(name, name.replace('_', ' '))}{of}{part} {digits}"
