"""Checks of results of `rir_mega` and `escucha`: what must hold for the numbers, and scoring their records again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ..harness.escucha.results import Mcqa
from ..harness.escucha.results import Result as EscuchaResult
from ..harness.results.old import Loss, Score
from ..harness.rir_mega.results import Rates
from ..harness.rir_mega.results import Result as RirMegaResult
from .findings import Findings, close, number
from .invariants import check_loss, check_score, check_version
from .rescore import Items
from .strict_json import shown

VERSIONS: Mapping[str, frozenset[str]] = {"rir_mega": frozenset({"1-1"}), "escucha": frozenset({"1"})}
"""The versions that this store takes."""

_RATES = {"wer": "word", "cer": "char"}
_SHARES = frozenset(
    {
        "accuracy", "accuracy_wilson", "accuracy_parsed", "chance", "unparsed", "consistency", "consistent",
        "accuracy_all_orders", "prompt_strict", "prompt_strict_wilson", "prompt_loose", "instruction_strict",
        "instruction_loose",
    }
)  # fmt: skip
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


def check_rir_mega(result: RirMegaResult, findings: Findings) -> None:
    """Note whatever cannot be in the summary of a recognizer on pairs."""
    check_version(result.benchmark, result.benchmark_version, VERSIONS, findings)
    data = result.data
    _check_common(result.inputs_sha256, data.n, data.n_total, partial=data.partial, findings=findings)
    if data.config != f"{data.language}_{data.split}":
        findings.error("data.config", f"{shown(data.config)} is not the config of {data.language} and {data.split}")
    if data.utterances > data.n or data.rooms_used > data.n:
        findings.error(
            "data.utterances", f"{data.utterances} utterances in {data.rooms_used} rooms make no {data.n} pairs"
        )
    if result.main_metric not in result.rates:
        findings.error("main_metric", f"{shown(result.main_metric)} is not among the rates")
    for name, rates in result.rates.items():
        if name not in ("wer", "wer_macro", "cer", "cer_macro"):
            findings.error("rates", f"{shown(name)} is no metric of this benchmark")
            continue
        _check_rates(f"rates.{name}", rates, data.n, findings)
    for where, bins in (("by_rt60", result.by_rt60), ("by_drr", result.by_drr)):
        for bin_ in bins:
            for name, rates in bin_.rates.items():
                _check_rates(f"{where}.{bin_.number}.{shown(name)[1:-1]}", rates, bin_.pairs, findings)
        if sum(bin_.pairs for bin_ in bins) > data.n:
            findings.error(where, "the bins have more pairs than there are")
    for arm, failures in result.failures.items():
        for name, count in failures.model_dump().items():
            if not 0 <= count <= data.n:
                findings.error(f"failures.{shown(arm)[1:-1]}.{name}", f"{count} of {data.n} pairs")


def _check_rates(where: str, rates: Rates, n: int, findings: Findings) -> None:
    for arm in ("clean", "reverb"):
        score: Score = getattr(rates, arm)
        check_score(f"{where}.{arm}", score, findings, least=0.0, most=math.inf)
        if score.n > n:
            findings.error(f"{where}.{arm}", f"n is {score.n} of {n} pairs")
    delta = rates.delta
    lost = Loss(absolute=delta.absolute, relative=delta.relative)
    check_loss(f"{where}.delta", lost, rates.reverb, findings, rising=True)
    if delta.p_value is not None and not 0 <= delta.p_value <= 1:
        findings.error(f"{where}.delta.p_value", f"{number(delta.p_value)} is no probability")
    values = rates.clean.value, rates.reverb.value, delta.absolute.value
    if None not in values and not close(values[1] - values[0], values[2]):  # type: ignore[operator,arg-type]
        findings.error(
            f"{where}.delta",
            f"{number(values[2])} is not the difference of {number(values[1])} and {number(values[0])}",
        )


def rescore_rir_mega(result: RirMegaResult, items: Items, findings: Findings) -> None:
    """Note every rate that does not follow from the pairs."""
    ids = items.texts("id")
    if len(set(ids)) != len(ids):
        findings.error("items.id", "a pair has two records")
    if set(items.texts("language")) - {result.data.language}:
        findings.error("items.language", "a pair is in another language than the result")
    decoded = np.array(
        [not a and not b for a, b in zip(items.texts("clean_error"), items.texts("reverb_error"), strict=True)],
        dtype=bool,
    )
    for name, unit in _RATES.items():
        if name not in result.rates:
            continue
        lengths = items.floats(f"{unit}_reference_length")[decoded]
        arms = {arm: items.floats(f"{arm}_{unit}_errors")[decoded] for arm in ("clean", "reverb")}
        kinds = {arm: sum(items.floats(f"{arm}_{unit}_{kind}")[decoded] for kind in
                          ("substitutions", "deletions", "insertions")) for arm in arms}  # fmt: skip
        if any((kinds[arm] != errors).any() for arm, errors in arms.items()):
            findings.error(f"items.{unit}_errors", "the kinds of error do not add up to the errors")
        if any((errors < 0).any() or not np.isfinite(errors).all() for errors in (*arms.values(), lengths)):
            findings.error(f"items.{unit}_errors", "a decoded pair has no count, or a negative one")
            continue
        said = lengths > 0
        for arm, errors in arms.items():
            total = float(lengths.sum())
            rate = float(errors.sum()) / total if total else None
            _compare(f"rates.{name}.{arm}", getattr(result.rates[name], arm), rate, len(lengths), findings)
            macro = result.rates.get(f"{name}_macro")
            if macro is not None:
                mean = float((errors[said] / lengths[said]).mean()) if said.any() else None
                _compare(f"rates.{name}_macro.{arm}", getattr(macro, arm), mean, int(said.sum()), findings)
    reverb = result.failures.get("reverb")
    undecodable = sum(bool(text) for text in items.texts("reverb_error"))
    if reverb is not None and reverb.undecodable != undecodable:
        findings.error(
            "failures.reverb.undecodable", f"the result says {reverb.undecodable}, its records {undecodable}"
        )


def check_escucha(result: EscuchaResult, findings: Findings) -> None:
    """Note whatever cannot be in the summary of an answerer."""
    check_version(result.benchmark, result.benchmark_version, VERSIONS, findings)
    data = result.data
    _check_common(result.inputs_sha256, data.n, data.n_total, partial=data.partial, findings=findings)
    check_score("overall", result.overall, findings, least=0.0, most=1.0)
    for kind, block in (("mcqa", result.mcqa), ("aif", result.aif)):
        if block is None:
            continue
        if "accuracy" not in block.scores:
            findings.error(f"{kind}.scores", "accuracy is missing")
        for name, score in block.scores.items():
            if name in _SHARES:
                check_score(f"{kind}.scores.{name}", score, findings, least=0.0, most=1.0)
            elif name == "accuracy_corrected":
                check_score(f"{kind}.scores.{name}", score, findings, least=-math.inf, most=1.0)
            else:
                findings.error(f"{kind}.scores", f"{shown(name)} is no score of this benchmark")
        if isinstance(block, Mcqa):
            _check_chance(block, findings)
    missing = sum(data.missing_audio.values())
    if missing > data.n or any(count < 0 for count in data.missing_audio.values()):
        findings.error("data.missing_audio", f"{missing} of {data.n} items")
    if data.coverage is not None and not 0 <= data.coverage <= 1:
        findings.error("data.coverage", f"{number(data.coverage)} is no share")


def _check_chance(block: Mcqa, findings: Findings) -> None:
    values = {name: score.value for name, score in block.scores.items()}
    accuracy, chance, corrected = (values.get(name) for name in ("accuracy", "chance", "accuracy_corrected"))
    if accuracy is None or chance is None or corrected is None or chance >= 1:
        return
    if not close((accuracy - chance) / (1 - chance), corrected, 1e-7):
        findings.error(
            "mcqa.scores.accuracy_corrected",
            f"{number(corrected)} is not {number(accuracy)} corrected for a chance of {number(chance)}",
        )


def rescore_escucha(result: EscuchaResult, items: Items, findings: Findings) -> None:
    """Note an accuracy that does not follow from the replies; spoken versions are in a comparison of their own."""
    marks: dict[str, dict[str, list[float]]] = {"mcqa": {}, "aif": {}}
    columns = [items.texts(name) for name in ("id", "kind", "order", "audio_status")]
    seen: set[tuple[str, bool, str]] = set()
    spoken = items.flags("spoken").tolist()
    followed = items.table["followed"].to_pylist()
    for place, (id_, kind, order, audio) in enumerate(zip(*columns, strict=True)):
        if (id_, spoken[place], order) in seen:
            findings.error("items.id", f"{shown(id_)} was asked twice in one way")
        seen.add((id_, spoken[place], order))
        if kind not in marks:
            findings.error("items.kind", f"{shown(kind)} is no kind of question")
            return
        if spoken[place] or audio != "ok":
            continue
        right = float(items.floats("correct")[place]) if kind == "mcqa" else float(all(followed[place] or [False]))
        if right not in (0.0, 1.0):
            findings.error("items.correct", f"{shown(id_)} is neither right nor wrong")
            return
        marks[kind].setdefault(id_, []).append(right)
    means = {kind: [math.fsum(own) / len(own) for own in found.values()] for kind, found in marks.items()}
    for kind, block in (("mcqa", result.mcqa), ("aif", result.aif)):
        own = means[kind]
        if block is not None and "accuracy" in block.scores:
            _compare(f"{kind}.scores.accuracy", block.scores["accuracy"], _mean(own), len(own), findings)
        elif own:
            findings.error(kind, f"the records have {len(own)} such items, the result says nothing about them")
    every = [*means["mcqa"], *means["aif"]]
    _compare("overall", result.overall, _mean(every), len(every), findings)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _check_common(inputs: str, n: int, n_total: int, *, partial: bool, findings: Findings) -> None:
    if not _HEX.fullmatch(inputs):
        findings.error("inputs_sha256", f"{shown(inputs)} is no sha256")
    if n < 1 or n_total < n:
        findings.error("data.n", f"{n} of {n_total} is no coverage")
    elif partial != (n < n_total):
        findings.error("data.partial", f"{n} of {n_total}, and partial is {str(partial).lower()}")


def _compare(where: str, said: Score, value: float | None, n: int, findings: Findings) -> None:
    same = said.value is value is None or (said.value is not None and value is not None and close(said.value, value))
    if not same:
        findings.error(where, f"the result says {number(said.value)}, its records give {number(value)}")
    if said.n != n:
        findings.error(where, f"the result says n = {said.n}, its records give {n}")
