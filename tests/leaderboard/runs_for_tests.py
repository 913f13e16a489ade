"""A run on a tiny collection: what `squtr evaluate --out` writes, by systems that need no weights."""

from __future__ import annotations

from pathlib import Path

from squtr.harness.systems.system import System
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe

from ..harness.evaluate_runs_for_tests import evaluate_runs
from ..harness.fakes import WordRetriever
from ..harness.mteb_for_tests import Garbler
from ..loaders.collections_for_tests import make_collection

CONDITIONS = ("clean", "medium_noise")


def make_run(folder: Path, *, limit: int = 0, names: tuple[str, ...] = ("words",)) -> Path:
    """Evaluate `garbler + <name>` on a tiny collection in two languages; returns the folder with `results/`."""
    collection = make_collection(folder / "tiny", queries=12)
    built = folder / "data"
    build(open_recipe(str(collection), conditions=list(CONDITIONS), benchmark="squtr"), built)
    data = BuiltData(built)
    texts = {language: [query.text for query in data.queries(subset)] for subset, language in data.subsets.items()}
    systems = [System(transcriber=Garbler(texts), retriever=WordRetriever(name)) for name in names]
    out = folder / "run"
    evaluate_runs(systems, data, out=out, resamples=50, samples=0)
    return out
