"""Files of a user's own system, by subset and condition: one file, or a pattern with placeholders."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from ...errors import DataError, UsageError, unknown_name

PLACEHOLDERS = ("subset", "condition", "config", "language")
PUBLISHED_LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("fiqa", "hotpotqa", "nq"), "en"),
    **dict.fromkeys(("medicalretrieval", "duretrieval", "t2retrieval"), "zh"),
}
"""Of the published subsets (SQuTR, arXiv 2602.12783, section 3.1)."""

Missing = Literal["error", "count"]
"""What becomes of ids that a precomputed file lacks."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class FilePattern:
    """A path, or a pattern with `{subset}`, `{condition}`, `{language}` or `{config}`.

    `{config}` is `<subset>_<condition>`, or `<language>_<condition>` where there is no such file. `languages` tells the
    language of a subset; those of the published subsets are known. `what` is what the files hold, for errors.
    Raises `UnknownNameError` for another placeholder.
    """

    def __init__(self, path: str | Path, *, what: str, languages: Mapping[str, str] | None = None) -> None:
        self.pattern = str(Path(path).expanduser())
        for placeholder in _PLACEHOLDER.findall(self.pattern):
            if placeholder not in PLACEHOLDERS:
                raise unknown_name("placeholder", placeholder, PLACEHOLDERS)
        self._what = what
        self._languages = {**PUBLISHED_LANGUAGES, **(languages or {})}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(_PLACEHOLDER.findall(self.pattern))

    @property
    def model(self) -> str:
        """The pattern without the user's folders above it."""
        return self.relative(Path(self.pattern))

    def revision(self) -> str:
        files = self.files()
        if not files:
            raise DataError(f"there are no {self._what} at {self.pattern}.", hint="Check the path.")
        digest = hashlib.sha256()
        for file in files:
            content = hashlib.sha256()
            for block in _blocks(file):
                content.update(block)
            digest.update(f"{self.relative(file)}\n{content.hexdigest()}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    def file(self, subset: str, condition: str) -> Path:
        """The file of a subset under a condition. Raises `DataError` that names what was looked for."""
        used = self.names
        language = self._languages.get(subset, "")
        if "language" in used and not language:
            raise self._unknown_language(subset)
        values = {"subset": subset, "condition": condition, "language": language}
        tried: list[Path] = []
        for scope in (subset, language) if "config" in used else ("",):
            if scope:
                values["config"] = f"{scope}_{condition}"
            path = Path(_PLACEHOLDER.sub(lambda match: values[match[1]], self.pattern))
            if path.is_file():
                return path
            if scope or "config" not in used:
                tried.append(path)
        if "config" in used and not language:
            raise self._unknown_language(subset, tried)
        raise DataError(
            f"there are no {self._what} of {subset} under {condition}: {' and '.join(map(str, tried))} "
            f"{'do' if len(tried) > 1 else 'does'} not exist.",
            hint="Check the path and its placeholders.",
        )

    def _unknown_language(self, subset: str, tried: Sequence[Path] = ()) -> Exception:
        missing = f"{tried[0]} does not exist, and " if tried else ""
        kind = DataError if tried else UsageError
        return kind(
            f"{missing}the language of the subset {subset!r} is not known, which {self.pattern} asks for.",
            hint=f"Give it, for example languages={{'{subset}': 'en'}}.",
        )

    def files(self) -> list[Path]:
        """All files that the pattern can mean, sorted by name."""
        parts = _PLACEHOLDER.split(self.pattern)  # literal text at even places, names at odd ones
        written = "".join("*" if i % 2 else glob.escape(part) for i, part in enumerate(parts))
        return sorted(path for path in map(Path, glob.glob(written)) if path.is_file())  # noqa: PTH207  # absolute, too

    def relative(self, path: Path) -> str:
        parts = Path(self.pattern).parts
        first = next((i for i, part in enumerate(parts) if _PLACEHOLDER.search(part)), len(parts) - 1)
        return "/".join(path.parts[min(first, len(parts) - 1) :])

    @property
    def default_name(self) -> str:
        """The last part of the path that still says something without its placeholders."""
        for part in reversed(Path(self.pattern).with_suffix("").parts):
            name = _PLACEHOLDER.sub("", part).strip("_-. ")
            if name and name != "/":
                return name
        return self._what


def check_missing(missing: str) -> None:
    """Raise `UnknownNameError` for what is no `Missing`."""
    if missing not in get_args(Missing):
        raise unknown_name("value of missing", missing, get_args(Missing))


def refuse_missing(what: str, missing: Sequence[str], wanted: int, there: Collection[str]) -> None:
    """Raise `DataError` if ids are missing of `wanted` ones; `what` is what a file has none of, `there` the ids it has.

    >>> refuse_missing("no transcript in a.jsonl", ["q1"], 4, {"Q1", "x"})
    Traceback (most recent call last):
    ...
    squtr.errors.DataError: 1 of 4 items have no transcript in a.jsonl: 'q1'; it has 'Q1', for example. ...
    """
    if not missing:
        return
    shown = ", ".join(map(repr, missing[:5])) + (", …" if len(missing) > 5 else "")
    # As a name without its suffix, or in other letters.
    near = {id_.casefold().removesuffix(".wav").removesuffix(".flac"): id_ for id_ in sorted(there)}
    like = near.get(missing[0].casefold().removesuffix(".wav").removesuffix(".flac")) or min(there, default="")
    raise DataError(
        f"{len(missing)} of {wanted} items have {what}: {shown}"
        + (f"; it has {like!r}, for example." if like else "."),
        hint="Complete the file, or let them count as failed or not found: the option missing: count "
        "(--option missing=count), with --max-failed where they are many.",
    )


def _blocks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                yield block
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.", hint="Check its permissions.") from error
