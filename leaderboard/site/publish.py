"""From a store of results to a published page: build, publish, and again whenever the results change."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ... import __version__
from ...errors import DataError, SqutrError, UsageError
from ...harness.results.files import write_atomically
from ...loaders.hub.repository import HUB_ADDRESS, Repository
from ..published import published_entries
from ..store import is_folder, read_store
from ..stored import FOLDER
from .build import FILES, PAGE, Site, build_site
from .document import Origin
from .page import DEFAULT_TITLE
from .pairs import FIRST

STATE = "built-from.json"
"""Beside the page: which results it was built from, and by which version."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a page is built: its title, whether published numbers stand on it, and how many systems are compared."""

    title: str = DEFAULT_TITLE
    published: bool = True
    first: int = FIRST
    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    progress: Callable[[int, int], None] | None = None
    say: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A built page, the state of the results it was built from, and sentences on results that were left out."""

    site: Site
    state: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: the place, its address, and the files that changed."""

    place: str
    address: str
    changed: tuple[str, ...]


def build_from(results: str, out: Path, options: Options | None = None) -> Built:
    """Build the page on the results of a folder or a data set ORG/NAME into `out`.

    The state is read before the results, so a result that comes meanwhile leads to another build, never to none.
    """
    chosen = options or Options()
    state = state_of(results, chosen)
    if is_folder(results):
        store = read_store(results)
        origin = Origin()
    else:
        store = read_store(results, revision=state, repository=_repository(results, "dataset", chosen))
        origin = Origin(results, f"{(chosen.endpoint or HUB_ADDRESS).rstrip('/')}/datasets/{results}")
    entries = [*store.entries, *(published_entries() if chosen.published else [])]
    site = build_site(
        entries,
        out,
        records=store.numbers,
        first=chosen.first,
        origin=origin,
        title=chosen.title,
        progress=chosen.progress,
    )
    write_atomically(out / STATE, _state_bytes(results, state, chosen))
    return Built(site, state, store.problems)


def state_of(results: str, options: Options | None = None) -> str:
    """What changes when results do: the commit of a data set, a digest of a folder's files."""
    if not is_folder(results):
        return _repository(results, "dataset", options or Options()).head()
    folder = Path(results).expanduser()
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist.", hint="Name a folder, or a data set on the Hub as ORG/NAME.")
    digest = hashlib.sha256()
    # Stored files never change: their names hold the hash of their content.
    for path in sorted(p.relative_to(folder).as_posix() for p in (folder / FOLDER).glob("*/*/*") if p.is_file()):
        digest.update(path.encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


def _state_bytes(results: str, state: str, options: Options) -> bytes:
    content = {
        # The path of a folder is its owner's business.
        "results": "" if is_folder(results) else results,
        "state": state,
        "squtr": __version__,
        "title": options.title,
        "published": options.published,
        "compared": options.first,
    }
    return (json.dumps(content, ensure_ascii=False, sort_keys=True) + "\n").encode("utf-8")


def site_files(folder: Path) -> dict[str, bytes]:
    """The files of a built page. Raises `DataError` if the folder holds none."""
    if not (folder / PAGE).is_file():
        raise DataError(f"{folder} holds no page.", hint="Run squtr leaderboard build first.")
    return {name: (folder / name).read_bytes() for name in (*FILES, STATE) if (folder / name).is_file()}


def publish(folder: Path, space: str, options: Options | None = None, *, private: bool = False) -> Published:
    """Publish a built page as the static Space ORG/NAME, in one commit; what is there already is not sent again."""
    if is_folder(space):
        raise UsageError(f"{space!r} is not the name of a Space.", hint="Write ORG/NAME.")
    files = site_files(folder)
    repository = _repository(space, "space", options or Options())
    repository.create_page(private=private)
    with warnings.catch_warnings():
        # The client asks whether a table in a Space is meant.
        warnings.filterwarnings("ignore", message=".*commit a data file", category=UserWarning)
        sent = repository.commit(files, title="Rebuild the leaderboard", replacing=True)
    endpoint = ((options and options.endpoint) or HUB_ADDRESS).rstrip("/")
    return Published(space, f"{endpoint}/spaces/{space}", sent.added)


def watch(
    results: str,
    to: str,
    options: Options | None = None,
    *,
    once: bool = False,
    every_s: float = 600.0,
    sleep: Callable[[float], None] = time.sleep,
    rounds: int | None = None,
) -> int:
    """Rebuild the page at `to` (a Space ORG/NAME or a folder) whenever the results changed; returns how often it did.

    What the page was built from stands beside it, so a watch that starts anew does nothing twice. `once` looks once,
    `rounds` so often (for ever by default). Trouble with the Hub or a disk is reported and tried again, unless `once`.
    """
    chosen, done, number = options or Options(), 0, 0
    if every_s <= 0:
        raise UsageError(f"the time between two looks is {every_s:g} s.", hint="Give more than 0 minutes.")
    while True:
        number += 1
        try:
            done += _look(results, to, chosen)
        except SqutrError as error:
            if once or error.exit_code != 1:
                raise
            _tell(chosen, f"{error} Looking again in {every_s / 60:g} min.")
        if once or number == rounds:
            return done
        sleep(every_s)


def _look(results: str, to: str, options: Options) -> bool:
    """Rebuild if the page was built from something else; says whether it did."""
    state = state_of(results, options)
    if _built_from(to, options) == _state_bytes(results, state, options):
        _tell(options, f"{to} is up to date ({state[:12]}).")
        return False
    if is_folder(to):
        built = build_from(results, Path(to).expanduser(), options)
    else:
        with tempfile.TemporaryDirectory(prefix="squtr-leaderboard-") as scratch:
            built = build_from(results, Path(scratch), options)
            publish(Path(scratch), to, options)
    for problem in built.problems:
        _tell(options, f"Left out: {problem}")
    _tell(options, f"Rebuilt {to} from {built.site.entries} systems ({built.state[:12]}).")
    return True


def _built_from(to: str, options: Options) -> bytes | None:
    if is_folder(to):
        path = Path(to).expanduser() / STATE
        return path.read_bytes() if path.is_file() else None
    repository = _repository(to, "space", options)
    # Makes the first look and every later one the same.
    repository.create_page()
    return repository.read(STATE)


def _repository(name: str, kind: str, options: Options) -> Repository:
    return Repository(
        name,
        "space" if kind == "space" else "dataset",
        token=options.token,
        endpoint=options.endpoint,
        waiting=options.say,
    )


def _tell(options: Options, text: str) -> None:
    if options.say:
        options.say(text)
