"""Peak memory of a build, of streaming and of loading, for few queries and for four times as many.

- build: clean, three levels of noise and reverberation of every query into parquet, as `squtr build` does it;
- stream: `load_dataset("squtr", …, streaming=True)` with reverberation and noise, timed from the call to the first row;
- load: the same into the cache of `datasets` by two processes.

The queries are 1 to 2 s of synthetic babble (the same few recordings over and over: what is held does not depend on
what is spoken), with the embedded noises and RIRs, which are made while it runs; the largest RIR alone takes 250 MB for
a moment. Each measurement has a process of its own, whose peak is VmHWM; what the libraries take is printed
beside it (a stream also makes `datasets` import torch, where that is installed).

    python scripts/speed/memory.py [--queries 1000 4000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDINGS = 64
CONDITIONS = ("clean", "low_noise", "medium_noise", "high_noise", "reverb")
CONFIG = "en_reverb_high_noise"


def write_collection(folder: Path, queries: int) -> None:
    """A collection folder in which `queries` queries share the recordings."""
    import numpy as np
    import soundfile

    from squtr.loaders.keyed import keyed_rng
    from squtr.loaders.noise.babble import babble
    from squtr.loaders.records import SAMPLE_RATE

    def write_lines(name: str, rows: list[dict[str, Any]]) -> None:
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    (folder / "speech").mkdir(parents=True)
    for number in range(RECORDINGS):
        rng = keyed_rng(0, "benchmark recording", str(number))
        clip = babble(rng, 2 * int(rng.integers(SAMPLE_RATE // 2, SAMPLE_RATE)), talkers=1)
        path = folder / f"speech/{number}.flac"
        soundfile.write(path, (0.5 * clip / np.abs(clip).max()).astype(np.float32), SAMPLE_RATE)
    about = {"name": f"benchmark-{queries}", "license": "CC0-1.0", "subsets": {"benchmark": "en"}}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    ids = [f"q{number:05d}" for number in range(queries)]
    write_lines("queries.en.jsonl", [{"_id": id_, "text": f"question number {id_}"} for id_ in ids])
    write_lines("corpus.en.jsonl", [{"_id": "d", "title": "", "text": "the answer"}])
    write_lines("qrels.en.jsonl", [{"query-id": id_, "corpus-id": "d", "score": 1} for id_ in ids])
    write_lines(
        "speech.en.jsonl", [{"_id": id_, "file": f"{number % RECORDINGS}.flac"} for number, id_ in enumerate(ids)]
    )


def build_it(source: Path, work: Path) -> dict[str, Any]:
    """All conditions into parquet."""
    import datasets  # noqa: F401 - counts as library, like in the other tasks

    from squtr.loaders.build import build
    from squtr.loaders.recipe import open_recipe

    before = memory_mb()
    manifest = build(open_recipe(str(source), conditions=CONDITIONS), work / "data")
    rows = sum(shard.rows for shard in manifest.shards if shard.path.startswith("queries/"))
    return {"before": before, "rows": rows}


def stream_it(source: Path, work: Path) -> dict[str, Any]:
    """Every row of a stream, and when the first one came."""
    import datasets

    import squtr

    before, start = memory_mb(), time.perf_counter()
    rows = datasets.load_dataset("squtr", CONFIG, source=str(source), split="test", streaming=True)
    first, count = 0.0, 0
    for _ in rows:
        first = first or time.perf_counter() - start
        count += 1
    return {"before": before, "rows": count, "first_row_s": first, "squtr": squtr.__version__}


def load_it(source: Path, work: Path) -> dict[str, Any]:
    """The whole split into the cache, by two processes."""
    import datasets  # noqa: F401 - counts as library, like in the other tasks

    import squtr

    before = memory_mb()
    rows = squtr.load_dataset(CONFIG, source=str(source), cache_dir=str(work), num_proc=2)
    # The largest of the workers, which have ended.
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"before": before, "rows": len(rows), "peak": max(memory_mb(), children)}


TASKS: dict[str, Callable[[Path, Path], dict[str, Any]]] = {"build": build_it, "stream": stream_it, "load": load_it}


def memory_mb() -> float:
    """Peak resident memory so far. Not from getrusage, which counts the parent's as well."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text(encoding="utf-8").partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(task: str, source: Path) -> dict[str, Any]:
    """Run `task` in a process of its own."""
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, __file__, "--task", task, "--source", str(source), "--work", work]
        # `datasets` keeps locks and, for its own cache, more than what cache_dir names in HF_HOME.
        environment = {**os.environ, "HF_HOME": f"{work}/hf", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise SystemExit(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return {**found, "seconds": time.perf_counter() - start}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Peak memory for few queries and for many.")
    parser.add_argument("--queries", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--only", choices=sorted(TASKS), nargs="+", default=list(TASKS))
    parser.add_argument("--task", choices=sorted(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        found = TASKS[arguments.task](arguments.source, arguments.work)
        print(json.dumps({"peak": memory_mb(), **found}))
        return

    with tempfile.TemporaryDirectory() as folder:
        sources = {queries: Path(folder) / str(queries) for queries in sorted(set(arguments.queries))}
        for queries, source in sources.items():
            write_collection(source, queries)
        print(f"{'':<8}{'queries':>9}{'clips':>9}{'peak MB':>9}{'libraries MB':>14}{'seconds':>9}{'first row s':>13}")
        for task in arguments.only:
            peaks = []
            for queries, source in sources.items():
                found = measure(task, source)
                peaks.append(found["peak"])
                first = f"{found['first_row_s']:.1f}" if "first_row_s" in found else ""
                print(
                    f"{task:<8}{queries:>9,}{found['rows']:>9,}{found['peak']:>9.0f}{found['before']:>14.0f}"
                    f"{found['seconds']:>9.1f}{first:>13}",
                    flush=True,
                )
            if len(peaks) > 1:
                print(f"{task}: the peak of the most queries is {peaks[-1] / peaks[0]:.2f} times that of the fewest.")


if __name__ == "__main__":
    main()
