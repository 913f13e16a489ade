"""CPU seconds of one process that loads a config with noise: the embedded noises, first and kept, beside recordings.

Each measurement is a process of its own, which streams the 68 English queries of the embedded collection and says what
CPU time that took, imports not counted:

- recordings: noise from a folder of 20 WAV files of 30 s, decoded before and kept in `$SQUTR_HOME`;
- first: the embedded noises, nothing kept yet (`$SQUTR_HOME` is empty);
- kept: the embedded noises, kept by an earlier process.

They run in turns; the median of the rounds counts, and ratios are against recordings.

    python scripts/speed/loading.py [--rounds 5] [--config en_medium_noise]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import soundfile

from squtr.loaders.banks import load_noise_bank

CONTENDERS = ("recordings", "first", "kept")
CODE = """
import sys, time
import datasets, soundfile, soxr, squtr, squtr.loaders.on_the_fly, scipy.fft, scipy.signal
config, noise = sys.argv[1:]
started, cpu = time.perf_counter(), time.process_time()
rows = sum(1 for _ in squtr.load_dataset(config, source="mini", noise=noise, streaming=True))
print(time.process_time() - cpu, time.perf_counter() - started, rows)
"""


def write_recordings(folder: Path) -> None:
    """The embedded noises as WAV files, a folder for each family."""
    bank = load_noise_bank("synthetic")
    for info in bank.noises():
        path = folder / info.family / f"{info.id}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, bank.read(info.id), 24_000)


def measure(config: str, noise: str, home: Path) -> tuple[float, float]:
    """CPU and wall seconds of one process."""
    environment = {**os.environ, "SQUTR_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", CODE, config, noise], env=environment, capture_output=True, text=True, check=True
    )
    cpu, wall, _ = map(float, done.stdout.split())
    return cpu, wall


def main() -> None:
    """Print the medians as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--config", default="en_medium_noise")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        os.environ["SQUTR_HOME"] = str(root / "making")
        write_recordings(root / "noise")
        for noise in ("synthetic", str(root / "noise")):
            measure(arguments.config, noise, root / "home")
        for number in range(arguments.rounds):
            for name in CONTENDERS:
                noise = str(root / "noise") if name == "recordings" else "synthetic"
                home = root / (f"first-{number}" if name == "first" else "home")
                times[name].append(measure(arguments.config, noise, home))
    found: dict[str, dict[str, float]] = {}
    for name in CONTENDERS:
        cpu, wall = (statistics.median(values) for values in zip(*times[name], strict=True))
        found[name] = {"cpu_s": round(cpu, 2), "wall_s": round(wall, 2)}
        found[name]["ratio"] = round(cpu / found["recordings"]["cpu_s"], 2)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
