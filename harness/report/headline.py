"""What was lost, in words, and how far the numbers carry."""

from __future__ import annotations

from ...loaders.conditions import parse_condition
from ..results.old_comparable import share_words
from ..results.old import MAIN_METRIC, Loss, Score
from .data import Run, Section, System, component_name
from .formats import escape, interval, level, number, percent, plural
from .tables import swatch

FEW_QUERIES = 30
IMPORTED = "imported: aggregates only, no intervals"


def best_system(section: Section) -> System | None:
    """The system with the highest main metric on `clean`, or on its mildest spoken condition; None without any."""
    scored = [
        (score.value, -system.index, system)
        for system in section.systems
        for run in system.runs[:1]
        if (score := run.score(MAIN_METRIC)) is not None and score.value is not None
    ]
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def lede(section: Section) -> str:
    """One paragraph: what speaking costs the best system without noise, and at its hardest condition."""
    system = best_system(section)
    if system is None:
        return "<p class='lede'>No spoken condition has been evaluated here.</p>"
    typed = None if system.text is None else system.text.score(MAIN_METRIC)
    sentences = []
    if typed is not None and typed.value is not None:
        sentences.append(
            f"Typed, {_strong(_retriever(system))} reaches nDCG@10 {_strong(number(typed.value, 2))} {_in(typed)}."
        )
    name = _strong(system.name)
    clean = system.run("clean")
    if clean is not None and clean.loss("text") is not None:
        sentences.append(f"Spoken without noise, {name} {_lost(clean.loss('text'))}.")
    elif clean is not None:
        sentences.append(f"Spoken without noise, {name} reaches {_value(clean)}.")
    worst = system.worst
    if worst is not None:
        loss = worst.loss("text")
        against = "typing" if loss is not None else "clean speech"
        loss = loss or worst.loss("clean")
        where = f"{escape(where_words(worst)[:1].upper() + where_words(worst)[1:])}, its hardest condition"
        sentences.append(
            f"{where}, it {_lost(loss)} against {against} and stands at {_value(worst)}."
            if loss is not None
            else f"{where}, it stands at {_value(worst)}."
        )
    return f'<p class="lede">{" ".join(sentences)}</p>'


def chains(section: Section) -> str:
    """One line per system: typed → clean → hardest."""
    lines = []
    arrow = '<span class="arrow">→</span>'
    for system in section.systems:
        steps: list[str] = []
        for run, words in (
            (system.text, "typed"),
            (system.run("clean"), "clean"),
            (system.worst, None if system.worst is None else where_words(system.worst)),
        ):
            if run is None or words is None:
                continue
            score = run.score(MAIN_METRIC)
            value = number(None if score is None else score.value, 2)
            bounds = f" <small>{_in(score)}</small>" if _in(score) else ""
            lead = arrow if steps else ""
            steps.append(f'<span class="step">{lead}<b>{value}</b> {escape(words)}{bounds}</span>')
        lines.append(
            f"<li><span class='system'>{swatch(system)}{escape(system.name)}</span>"
            f"<span class='steps'><span class='metric'>nDCG@10</span> {' '.join(steps)}</span></li>"
        )
    return f'<ul class="chains">{"".join(lines)}</ul>'


def warnings(section: Section) -> str:
    """What weakens the numbers: few queries, runs over different queries, no typed baseline."""
    found = []
    if section.imported:
        found.append("Imported from another tool: aggregates only, no intervals, and no queries to look at.")
    least = section.sizes[0]
    if least < FEW_QUERIES and not section.imported:
        found.append(
            f"Only {plural(least, 'query')}: the intervals are wide, and differences between systems or conditions "
            "of less than their width may be chance."
        )
    if not section.same_queries:
        sizes = ", ".join(map(str, section.sizes))
        found.append(f"The runs do not cover the same queries (n = {sizes}): compare across rows with care.")
    without = [system.name for system in section.systems if system.text is None]
    if without:
        found.append(f"No typed run, so no loss against text: {escape(', '.join(without))}.")
    return "".join(f'<p class="warning"><strong>Note.</strong> {text}</p>' for text in found)


def facts(section: Section) -> str:
    """Collection, size, seed and versions in one line."""
    first = section.first
    data = first.data
    subsets = sorted({subset for run in section.runs for subset in run.result.data.subsets})
    parts = [
        f"<b>{size_words(section)}</b> queries",
        f"{'subset' if len(subsets) == 1 else 'subsets'} {escape(', '.join(subsets))}",
        f"source {escape(data.source)} {escape(data.source_version)}".rstrip(),
    ]
    if not section.imported:
        parts.append(f"seed {first.seed}")
    # Systems without words state the standard normalizer, which they have no use for.
    normalizers = {
        f"{run.result.system.normalizer} {run.result.system.normalizer_version}"
        for run in section.runs
        if run.result.system.transcriber is not None and run.result.system.normalizer
    }
    parts += [f"normalizer {escape(name)}" for name in sorted(normalizers)]
    parts += [
        f"{escape(first.benchmark)} benchmark {escape(first.benchmark_version)}",
    ]
    return f'<p class="facts">{" · ".join(parts)}</p>'


def part_words(section: Section) -> str:
    """What share of the queries the runs cover, "" if they cover all."""
    return "" if section.part is None else share_words(*section.part)


def size_words(section: Section) -> str:
    """The number of queries, or its range."""
    sizes = section.sizes
    return f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"


def where_words(run: Run) -> str:
    """Where a spoken run was, as it reads in a sentence."""
    condition = parse_condition(run.condition)
    if condition.snr_db is None:
        return "in a room" if condition.reverb else "without noise"
    place = " in a room" if condition.reverb else ""
    return f"at {level(condition.snr_db)} SNR{place}"


def _retriever(system: System) -> str:
    info = system.info
    return component_name(info.retriever) or component_name(info.encoder) or system.name


def _lost(loss: Loss | None) -> str:
    if loss is None or loss.absolute.value is None:
        return "has no defined loss"
    if loss.absolute.value == 0 == loss.absolute.low == loss.absolute.high:
        return f"loses {_strong('nothing')}"
    gain = loss.absolute.value < 0
    bounds = _negated(loss.absolute) if gain else loss.absolute
    details = [_in(bounds)] if _in(bounds) else []
    if loss.relative.value is not None:
        details.append(percent(abs(loss.relative.value), 0))
    if bounds.low is not None and bounds.high is not None and bounds.low <= 0 <= bounds.high:
        details.append("not distinguishable from no change")
    verb = "gains" if gain else "loses"
    return f"{verb} {_strong(number(bounds.value, 2))}" + (f" ({', '.join(details)})" if details else "")


def _negated(score: Score) -> Score:
    """A gain from a negative loss."""

    def minus(value: float | None) -> float | None:
        return None if value is None else -value

    return Score(value=minus(score.value), low=minus(score.high), high=minus(score.low), n=score.n)


def _value(run: Run) -> str:
    score = run.score(MAIN_METRIC)
    return _strong(number(None if score is None else score.value, 2)) + f" {_in(score)}".rstrip()


def _in(score: Score | None) -> str:
    return interval(score, 2)


def _strong(text: str) -> str:
    return f"<strong>{escape(text)}</strong>"
