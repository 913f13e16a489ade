"""Fetch a bank of recorded noise or rooms, or say where to get it. Without NAME: list the banks and their licenses.

A stopped download continues. Without a network the command says which files to get from where and where to put them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .common import note, say, say_json

if TYPE_CHECKING:
    from ...loaders.banks.catalog import BankSpec, Kind

EXAMPLE = """example:
  squtr fetch noise
  squtr fetch noise demand
  squtr build --noise demand+noisex --out data
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("kind", metavar="KIND", help="noise or rooms")
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the bank; without it, all are listed")
    parser.add_argument("--to", type=Path, metavar="DIR", help="another folder ($SQUTR_HOME/banks/NAME)")
    parser.add_argument("--url", default="", metavar="BASE", help="another place that holds the same files")
    parser.add_argument("--variant", default="", metavar="NAME", help="another choice of files, for example 16k")
    parser.add_argument("--json", action="store_true", help="print one JSON object about the bank")


def run(arguments: argparse.Namespace) -> int:
    """Fetch, or list."""
    from ...errors import FetchError, HubError, UsageError, unknown_name
    from ...loaders.banks import NOISE_BANKS, ROOM_BANKS
    from ...loaders.banks.catalog import CATALOGUE, KINDS, bank_folder
    from ...loaders.banks.fetch import fetch_bank, where_from

    kind = next((known for known in KINDS if known == arguments.kind), None)
    if kind is None:
        raise unknown_name("kind of bank", arguments.kind, KINDS)
    specs = {name: spec for name, spec in CATALOGUE.items() if spec.kind == kind}
    if not arguments.name:
        return _list(specs, as_json=arguments.json)
    embedded = NOISE_BANKS if kind == "noise" else ROOM_BANKS
    if arguments.name in embedded:
        raise UsageError(f"the bank {arguments.name!r} is part of squtr.", hint="Use it as it is.")
    if arguments.name not in specs:
        raise unknown_name(f"bank of {kind}", arguments.name, specs)
    spec = specs[arguments.name]
    folder = arguments.to.expanduser() if arguments.to else bank_folder(spec.name)
    note(f"{spec.title}. License: {spec.license}. {spec.license_note}")
    try:
        with _Bar() as bar:
            fetched = fetch_bank(spec, folder, variant=arguments.variant, base_url=arguments.url, progress=bar)
    except (FetchError, HubError):
        note(where_from(spec, folder, arguments.variant, arguments.url))
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
                "sounds": number,
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
    what = "noises" if kind == "noise" else "rooms"
    say(f"{name}: {number} {what}{of_families} in {folder}, version {version}, license {spec.license}.")
    say(f"Use: squtr build --{kind} {name}")
    return 0


def _contents(kind: Kind, name: str) -> tuple[int, list[str], str]:
    """How many sounds, which families, and the version."""
    from ...loaders.banks import load_noise_bank, load_room_bank

    if kind == "rooms":
        rooms = load_room_bank(name)
        return len(rooms.rooms()), [], rooms.version
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that `done` of `total` bytes of this file are there."""
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
