"""Scores in the layout of `mteb`'s own results, for `mteb.ResultCache`, and back as aggregates."""

from __future__ import annotations

from pathlib import Path

from . import Exchanged


def export_scores(folder: Path, out: Path) -> Exchanged:
    """`export_mteb` of all systems below `folder`."""
    from ..evaluation.run import counted
    from ..mteb.exchange import META_NAME, export_mteb

    written = export_mteb(folder, out)
    models = sum(path.name == META_NAME for path in written)
    results = counted(len(written) - models, "task result")
    place = out / "results"
    return Exchanged(tuple(written), f"Wrote {results} of {counted(models, 'system')} into {place}.")


def import_scores(folder: Path, out: Path) -> Exchanged:
    """`import_mteb` into `out`."""
    from ..evaluation.run import counted
    from ..mteb.exchange import import_mteb

    found = import_mteb(folder, out)
    remarks: tuple[str, ...] = ()
    if found.skipped:
        skipped = counted(len(found.skipped), "task")
        remarks = (f"Skipped {skipped}, because this benchmark does not have them: {', '.join(found.skipped)}.",)
    results, place = counted(len(found.paths), "result"), out / "results"
    return Exchanged(
        found.paths,
        f"Imported {results} into {place}: aggregates only, without intervals.",
        remarks,
        {"skipped": list(found.skipped)},
    )
