"""Where noise and RIRs come from: banks by name, folders of the user's own recordings, and data sets on the Hub.

How a bank is written:

    synthetic, simulated          embedded, made by code
    demand, noisex, musan         noise, and
    rir_mega                      rooms, fetched into $SQUTR_HOME/banks
    demand:DIR                    the same, fetched elsewhere
    rir_mega:train                its train split, as is rir_mega?split=train
    hub:org/name@<commit>         a data set with an audio column
    DIR                           a folder of recordings
    demand+noisex                 several as one
    demand?family=cafe,street     these families alone, of any bank of noises
    DIR?license=CC-BY-4.0&attribution=A. Person     what the card says of one's own recordings
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from ...errors import DataError, UsageError, unknown_name
from ..sources.names import SourceName, parse_source_name
from .catalog import CATALOG, Kind, bank_folder
from .chosen import of_families
from .protocols import NoiseBank, NoiseInfo, RirBank

__all__ = ["NOISE_BANKS", "RIR_BANKS", "NoiseBank", "NoiseInfo", "RirBank", "load_noise_bank", "load_rir_bank"]

NOISE_BANKS = {"synthetic": "..noise.synthetic:SyntheticNoises"}
RIR_BANKS = {"simulated": "..rirs.simulated:SimulatedRirs"}

BANK_OPTIONS = {"rir_mega": ("split",)}
"""Options that a cataloged bank takes, beside those of all banks."""
FAMILY = "family"
FOLDER_OPTIONS = ("license", "attribution")
"""Options of a folder of recordings: what the card is to say of them."""
BANK_SPLITS = {"rir_mega": ("train", "val", "test")}
"""Splits that may be written in the place of a folder (a folder of that name is written `./train`)."""
HUB = "hub"


@dataclass(frozen=True, slots=True)
class _Openers:
    kind: Kind
    label: str
    embedded: dict[str, str]
    folder: str
    hub: str
    joined: str

    @property
    def known(self) -> list[str]:
        return [*self.embedded, *(name for name, spec in CATALOG.items() if spec.kind == self.kind)]


_NOISES = _Openers("noise", "noise bank", NOISE_BANKS, ".folder:FolderNoises", ".hub:HubNoises", ".joined:JoinedNoises")
_RIRS = _Openers("rirs", "RIR bank", RIR_BANKS, ".folder:FolderRirs", ".hub:HubRirs", ".joined:JoinedRirs")


def load_noise_bank(name: str | Path, channel: int | None = None) -> NoiseBank:
    """The noise bank called `name`, or the one in the folder `name`.

    A known name wins over a folder of the same name (write `./synthetic` for the folder). `channel` (from 0) is taken
    from recordings with several channels; an embedded bank has one channel and needs none. Raises `UnknownNameError`
    that suggests the nearest name, and `DataError` for a folder that is missing or holds no audio, or a bank that has
    not been fetched.

    >>> load_noise_bank("synthetic").noises()[0].family
    'babble'
    """
    return cast("NoiseBank", _open(name, channel, _NOISES))


def load_rir_bank(name: str | Path, channel: int | None = None) -> RirBank:
    """The RIR bank called `name`, or the one in the folder `name`; everything else as in `load_noise_bank`.

    >>> len(load_rir_bank("simulated").rirs())
    24
    """
    return cast("RirBank", _open(name, channel, _RIRS))


def _open(name: str | Path, channel: int | None, openers: _Openers) -> Any:
    if not isinstance(name, str) or Path(name).exists():
        return _from_folder(name, channel, openers)
    if "+" in name:
        return _named(openers.joined)([_open(part, channel, openers) for part in name.split("+")])
    if "?" not in name:
        return _single(SourceName(name, *_kind_and_place(name)), channel, openers)
    parsed = _parse(name, openers)
    options = dict(parsed.options)
    families = options.pop(FAMILY, "") if openers.kind == "noise" else ""
    bank = _single(replace(parsed, options=options), channel, openers)
    return of_families(bank, families.split(",")) if families else bank


def _kind_and_place(name: str) -> tuple[str, str]:
    kind, _, place = name.partition(":")
    return kind, place


def _single(name: SourceName, channel: int | None, openers: _Openers) -> Any:
    """One bank, by its name with the options that it takes itself."""
    written = name.text.partition("?")[0]
    if written in openers.embedded:
        _refuse_options(name, (), openers)
        return _named(openers.embedded[written])()
    if name.kind == HUB:
        return _named(openers.hub)(name, channel)
    if name.kind in CATALOG:
        return _cataloged(name, channel, openers)
    _refuse_options(name, FOLDER_OPTIONS, openers)
    return _from_folder(unquote(written), channel, openers, **name.options)


def _from_folder(name: str | Path, channel: int | None, openers: _Openers, **options: str) -> Any:
    attribution = options.pop("attribution", "")
    bank = _named(openers.folder)(_folder(name, openers), channel, **options)
    bank.attribution = attribution
    bank.files()
    return bank


def _refuse_options(name: SourceName, known: tuple[str, ...], openers: _Openers) -> None:
    more = (FAMILY,) if openers.kind == "noise" else ()
    for option in name.options:
        if option not in known:
            raise unknown_name(f"option of the {openers.label} {name.text.partition('?')[0]}:", option, (*known, *more))


def _cataloged(name: SourceName, channel: int | None, openers: _Openers) -> Any:
    spec = CATALOG[name.kind]
    if spec.kind != openers.kind:
        raise unknown_name(openers.label, name.kind, openers.known)
    _refuse_options(name, BANK_OPTIONS.get(spec.name, ()), openers)
    options = dict(name.options)
    place = name.place
    if place in BANK_SPLITS.get(spec.name, ()) and not Path(place).is_dir():
        options["split"], place = place, ""
    folder = Path(place).expanduser() if place else bank_folder(spec.name)
    bank = _named(spec.target)(folder, channel, **options)
    bank.files()
    return bank


def _parse(name: str, openers: _Openers) -> SourceName:
    try:
        return parse_source_name(name)
    except UsageError as error:
        raise UsageError(f"the {openers.label} {name!r} is not written as it should be.", hint=error.hint) from error


def _named(spec: str) -> Callable[..., Any]:
    module, _, attribute = spec.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module, __name__), attribute))


def _folder(name: str | Path, openers: _Openers) -> Path:
    kind = openers.label
    if name == "":
        raise unknown_name(kind, name, openers.known)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    looks_like_path = isinstance(name, Path) or os.sep in name or name.startswith((".", "~")) or path.exists()
    if not looks_like_path:
        raise unknown_name(kind, str(name), openers.known)
    what = "is a file, not a folder" if path.exists() else "does not exist"
    raise DataError(
        f"the {kind} {name} {what}.",
        hint=f"Give a folder of recordings, or one of: {', '.join(sorted(openers.known))}.",
    )
