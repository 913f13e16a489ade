"""Writes `constraints.txt` from the environment it runs in: what `squtr[dev,bench]` needs, and no more.

Run it in an environment in which the whole test suite passes: `.venv/bin/python scripts/pin_constraints.py`.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = "squtr"
EXTRAS = frozenset({"dev", "bench"})
TARGET = Path(__file__).resolve().parents[1] / "constraints.txt"
HEADER = """\
# The versions that the test suite passes with, on Linux with Python {python}: pip install -c constraints.txt …
# Written by scripts/pin_constraints.py. On PyPI torch {torch} for Linux brings CUDA; for the CPU build, put its wheel
# where pip's find-links looks, or install it first from https://download.pytorch.org/whl/cpu.
"""


def closure(name: str, extras: frozenset[str]) -> dict[str, str]:
    """Installed versions, without local part, of all that `name[extras]` requires, itself left out."""
    seen: dict[str, set[str]] = {}
    queue = [(name, set(extras))]
    while queue:
        current, wanted = queue.pop()
        key = canonicalize_name(current)
        new = wanted | {""} if key not in seen else wanted - seen[key]
        if not new:
            continue
        seen.setdefault(key, set()).update(new)
        for line in metadata.requires(current) or []:
            requirement = Requirement(line)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in new):
                queue.append((requirement.name, set(requirement.extras)))
    return {key: Version(metadata.version(key)).public for key in sorted(seen) if key != canonicalize_name(name)}


def main() -> None:
    """Writes the file, or says which requirement is not installed."""
    try:
        pins = closure(ROOT, EXTRAS)
    except metadata.PackageNotFoundError as error:
        sys.exit(f"{error.name} is required and not installed. Run: make bench check")
    header = HEADER.format(python=f"{sys.version_info.major}.{sys.version_info.minor}", torch=pins["torch"])
    TARGET.write_text(header + "".join(f"{key}=={version}\n" for key, version in pins.items()), encoding="utf-8")
    print(f"{TARGET.name}: {len(pins)} pins")


if __name__ == "__main__":
    main()
