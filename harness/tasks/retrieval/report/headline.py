"""What was lost, in words, and how far the numbers carry."""

from __future__ import annotations

from ....report.formats import interval, metric_name, number, percent, where_words
from ....report.sections import Run, Section, System
from ....report.tables import failed_lines
from ....report.task_report import Chain, Prose, Step, Strong, few
from ....results.envelope import Loss, Score


def best_system(section: Section) -> System | None:
    """The system with the highest main metric on its mildest spoken condition; None without any."""
    scored = [
        (score.value, -system.index, system)
        for system in section.systems
        for run in system.runs[:1]
        if (score := run.score()) is not None and score.value is not None
    ]
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def worst_run(system: System) -> Run | None:
    """The spoken run with the lowest main score other than `clean`; the last of equals."""
    scored = [(s.value, run) for run in system.runs if (s := run.score()) and s.value is not None]
    harder = [(value, run) for value, run in scored if run.condition != "clean"]
    return min(reversed(harder), key=lambda pair: pair[0])[1] if harder else None


def lede(section: Section) -> Prose:
    """What speaking costs the best system without noise, and at its hardest condition."""
    system = best_system(section)
    if system is None:
        return ["No spoken condition has been evaluated here."]
    metric = metric_name(section.metric)
    parts: list[str] = []
    typed = None if system.text is None else system.text.score()
    if typed is not None and typed.value is not None:
        value = Strong(number(typed.value, 2))
        parts += ["Typed, ", Strong(_searcher(system)), f" reaches {metric} ", value, f" {_in(typed)}. "]
    clean = system.run("clean")
    if clean is not None:
        loss = clean.loss("text")
        clause = _lost(loss) if loss is not None else ["reaches ", *_value(clean)]
        parts += ["Spoken without noise, ", Strong(system.name), " ", *clause, ". "]
    worst = worst_run(system)
    if worst is not None:
        loss = worst.loss("text") or worst.loss("clean")
        against = "typing" if worst.loss("text") is not None else "clean speech"
        where = where_words(worst.condition)
        parts += [f"{where[:1].upper()}{where[1:]}, its hardest condition, it "]
        parts += [*_lost(loss), f" against {against} and reaches "] if loss is not None else ["reaches "]
        parts += [*_value(worst), "."]
    return parts


def chains(section: Section) -> list[Chain]:
    found = []
    for system in section.systems:
        worst = worst_run(system)
        steps = [
            _step(run, words)
            for run, words in (
                (system.text, "typed"),
                (system.run("clean"), "clean"),
                (worst, "" if worst is None else where_words(worst.condition)),
            )
            if run is not None
        ]
        found.append(Chain(system.name, system.index, metric_name(section.metric), steps))
    return found


def _step(run: Run, words: str) -> Step:
    score = run.score()
    return Step(number(None if score is None else score.value, 2), words, _in(score))


def warnings(section: Section) -> list[str]:
    """What weakens the numbers: few queries, runs over different queries, no typed baseline."""
    found = []
    if section.imported:
        found.append("Imported from another tool: aggregates only, no intervals and no single queries.")
    else:
        found += few(section.sizes[0], "query")
    if not section.same_items:
        sizes = ", ".join(map(str, section.sizes))
        found.append(f"The runs do not cover the same queries (n = {sizes}): compare across rows with care.")
    if failed := failed_lines(section, section.error_metric):
        found.append(
            f"A query that failed retrieves nothing and scores 0, and is in no error rate: {'; '.join(failed)}."
        )
    without = [system.name for system in section.systems if system.text is None]
    if without:
        found.append(f"No typed run, so no loss against text: {', '.join(without)}.")
    return found


def facts(section: Section) -> list[str]:
    first = section.first
    data = first.data
    subsets = sorted({subset for run in section.runs for subset in run.result.data.subsets})
    found = [
        f"{section.size_words} queries",
        f"{'subset' if len(subsets) == 1 else 'subsets'} {', '.join(subsets)}",
        f"source {data.source} {data.source_version}".rstrip(),
    ]
    if not section.imported:
        found.append(f"seed {first.seed}")
    # Systems without transcripts have no use for a normalizer.
    normalizers = {
        f"{run.result.system.normalizer} {run.result.system.normalizer_version}"
        for run in section.runs
        if "transcriber" in run.result.system.components and run.result.system.normalizer
    }
    found += [f"normalizer {name}" for name in sorted(normalizers)]
    return [*found, f"{first.benchmark} benchmark {first.benchmark_version}"]


def _searcher(system: System) -> str:
    info = system.info
    return info.component_name("retriever") or info.component_name("encoder") or system.name


def _lost(loss: Loss | None) -> Prose:
    if loss is None or loss.absolute.value is None:
        return ["has no defined loss"]
    if loss.absolute.value == 0 == loss.absolute.low == loss.absolute.high:
        return ["loses ", Strong("nothing")]
    gain = loss.absolute.value < 0
    bounds = _negated(loss.absolute) if gain else loss.absolute
    details = [_in(bounds)] if _in(bounds) else []
    if loss.relative.value is not None:
        details.append(percent(abs(loss.relative.value), 0))
    if bounds.low is not None and bounds.high is not None and bounds.low <= 0 <= bounds.high:
        details.append("not distinguishable from no change")
    shown = f" ({', '.join(details)})" if details else ""
    return ["gains " if gain else "loses ", Strong(number(bounds.value, 2)), shown]


def _negated(score: Score) -> Score:

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return Score(value=minus(score.value), low=minus(score.high), high=minus(score.low), n=score.n)


def _value(run: Run) -> Prose:
    score = run.score()
    bounds = _in(score)
    return [Strong(number(None if score is None else score.value, 2)), f" {bounds}" if bounds else ""]


def _in(score: Score | None) -> str:
    return interval(score, 2)
