"""The HTML report: one safe file, every number from the results, nothing lost."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.report import write_report
from squtr.harness.report.formats import interval, number
from squtr.harness.results.envelope import RunRecord, items_table, read_runs, write_run

from .report_runs_for_tests import SCHEMA, Example, edit_json, example_records, tiny_clip, write_example

VOID = {"meta", "br", "wbr", "img", "input", "hr", "link"}
EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'


class Page(HTMLParser):
    """Elements with their attributes, text by element, and whether tags balance."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:], self.getpos())
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    write_example(place)
    return place


@pytest.fixture(scope="module")
def content(folder: Path) -> str:
    return write_report(folder, folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(content: str) -> Page:
    return Page(content)


def build(folder: Path, records: list[RunRecord], **options: int) -> str:
    for record in records:
        write_run(folder, record)
    return write_report(folder, folder / "report.html", **options).read_text(encoding="utf-8")


def with_rows(record: RunRecord, **columns: object) -> RunRecord:
    return RunRecord(record.result, items_table(({**row, **columns} for row in record.items.to_pylist()), SCHEMA))


def test_needs_nothing_outside_itself(page: Page, content: str) -> None:
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in ("src", "href", "data", "action", "poster", "srcset"):
                assert value.startswith(("#", "data:audio/flac;base64,")), (tag, name, value[:60])
            assert not name.startswith("on"), (tag, name)
            assert name != "style"
    assert not re.search(r"https?:|url\(|@import|\bfetch\b|XMLHttpRequest", content)
    assert not page.all("link")


def test_policy_allows_exactly_its_own_script_and_style(page: Page, content: str) -> None:
    policy = page.all("meta")[1]["content"]
    for tag in ("style", "script"):
        inside = re.search(f"<{tag}>(.*?)</{tag}>", content, re.DOTALL)
        assert inside is not None
        digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_tags_balance_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {attributes["href"][1:] for attributes in page.all("a")}
    assert targets <= set(ids)


def test_drawings_are_well_formed_and_described(content: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", content, re.DOTALL)
    assert drawings
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        if root.get("aria-hidden") is None:
            assert root.findtext("title")
            assert root.findtext("desc")
        for text in re.findall(r' (?:x|y|cx|cy|points|x1|y1|x2|y2)="([^"]*)"', drawing):
            for value in re.split("[ ,]", text):
                assert re.fullmatch(r"-?\d+(\.\d)?", value), value


def test_every_score_of_every_run_is_shown(folder: Path, page: Page) -> None:
    text = "".join(page.text)
    for record in read_runs(folder):
        for metric in ("ndcg_at_10", "mrr_at_10", "recall_at_10"):
            score = record.result.scores[metric]
            assert number(score.value) in text
        assert interval(record.result.scores["ndcg_at_10"]) in text
        for losses in record.result.losses.values():
            assert number(losses["ndcg_at_10"].absolute.value) in text
            assert interval(losses["ndcg_at_10"].absolute) in text
    for word in ("nan", "None", "inf", "null"):
        assert not re.search(rf"\b{word}\b", text), word


def test_headline_says_what_was_lost(folder: Path, page: Page) -> None:
    text = "".join(page.text)
    records = {record.result.key: record.result for record in read_runs(folder)}
    name = "whisper-base + BM25"
    typed, clean = (records[name, f"en_{c}"].scores["ndcg_at_10"].value for c in ("text", "clean"))
    assert f"{number(typed, 2)} typed" in text
    assert f"{number(clean, 2)} clean" in text
    hardest = min(
        (r for (system, _), r in records.items() if system == name and r.data.language == "en"),
        key=lambda r: r.scores["ndcg_at_10"].value or 0,
    )
    assert hardest.data.condition == "snr_-5"
    assert f"{number(hardest.scores['ndcg_at_10'].value, 2)} at −5\u202fdB SNR" in text


def test_chinese_is_counted_by_character_and_marked_as_chinese(page: Page, content: str) -> None:
    text = "".join(page.text)
    assert "CER, corpus" in text
    assert "WER, corpus" in text
    for found in re.finditer("存了溯澜存款，银行要是倒闭了，最多赔我多少？", content):
        assert 'lang="zh"' in content[max(0, found.start() - 80) : found.start()]


def test_table_heads_have_scopes_and_regions_have_names(page: Page) -> None:
    assert all(attributes.get("scope") in ("col", "row", "rowgroup") for attributes in page.all("th"))
    regions = [a for a in page.all("div") if a.get("role") == "region"]
    assert regions
    assert all(a["aria-label"] and a["tabindex"] == "0" for a in regions)
    assert all(a["aria-label"] for a in page.all("audio"))


def test_few_queries_are_warned_about(content: str, tmp_path: Path) -> None:
    assert "Only 24 queries" in content
    many = Example(languages=("en",), systems=(("a", "BM25"),), conditions=("text", "clean"), n=30)
    assert "intervals are wide" not in build(tmp_path, example_records(many))


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    example = Example(languages=("en",), systems=(("a<b>", 'R"2'),), n=6, first_text={"en": EVIL})
    records = [
        with_rows(r, transcript=EVIL, noise_id=EVIL, voice=EVIL, noise_family=EVIL, documents=[EVIL], error=error)
        for r in example_records(example)
        for error in [EVIL if r.result.data.condition == "snr_-5" else ""]
    ]
    records = [
        RunRecord(r.result.model_copy(update={"data": r.result.data.model_copy(update={"license": EVIL})}), r.items)
        for r in records
    ]
    content = build(tmp_path, records)
    page = Page(content)
    assert len(page.all("script")) == 1
    assert not page.all("img")
    assert page.open == []
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert "&lt;script&gt;" in content
    for drawing in re.findall(r"<svg.*?</svg>", content, re.DOTALL):
        ElementTree.fromstring(drawing)


def test_title_is_escaped(folder: Path, tmp_path: Path) -> None:
    out = write_report(folder, tmp_path / "r.html", title="A <i>b</i> & c")
    assert "<title>A &lt;i&gt;b&lt;/i&gt; &amp; c</title>" in out.read_text(encoding="utf-8")


def test_same_runs_give_the_same_bytes(folder: Path, content: str, tmp_path: Path) -> None:
    assert write_report(folder, tmp_path / "again.html").read_text(encoding="utf-8") == content


def test_players_hold_the_clips_themselves(folder: Path, page: Page) -> None:
    sources = [attributes["src"] for attributes in page.all("audio")]
    clips = sorted((folder / "samples").rglob("*.flac"))
    held = sorted(base64.b64decode(source.partition("base64,")[2]) for source in sources)
    assert held == sorted(path.read_bytes() for path in clips)
    assert all(attributes["preload"] == "none" for attributes in page.all("audio"))


def test_audio_over_the_limit_is_left_out_whole_and_named(folder: Path, tmp_path: Path) -> None:
    one = sum(4 * -(-p.stat().st_size // 3) for p in (folder / "samples/mini-en/en-q00").iterdir())
    out = write_report(folder, tmp_path / "r.html", max_audio_bytes=one)
    page = Page(out.read_text(encoding="utf-8"))
    assert len(page.all("audio")) == 6
    text = "".join(page.text)
    assert "query en-q01" in text
    assert "query zh-q00" in text


def test_files_that_are_no_clips_are_named(tmp_path: Path) -> None:
    example = Example(languages=("en",), systems=(("a", "BM25"),), conditions=("text", "clean"), n=3)
    write_example(tmp_path, example, clips=1)
    place = tmp_path / "samples/mini-en/en-q00"
    (place / "reverb.flac").write_bytes(b"RIFF")
    (place / "loud.flac").write_bytes(tiny_clip(1))
    text = "".join(Page(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert "en-q00/reverb.flac: not a FLAC file" in text
    assert "en-q00/loud.flac: not named after a condition" in text


def test_undefined_numbers_are_dashes(tmp_path: Path) -> None:
    example = Example(languages=("en",), systems=(("a", "BM25"),), conditions=("text", "clean"), n=1)
    records = example_records(example)
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    for record in records:
        write_run(tmp_path, record)
    edit_json(tmp_path, "en_clean.json", {"scores": {"ndcg_at_10": nothing, "wer": nothing}})
    text = "".join(Page(write_report(tmp_path, tmp_path / "r.html").read_text(encoding="utf-8")).text)
    assert "–" in text
    assert "None" not in text


@pytest.mark.parametrize("conditions", [("text",), ("clean",), ("snr_-5", "reverb_snr_-5"), ("text", "reverb")])
def test_any_set_of_conditions_makes_a_page(conditions: tuple[str, ...], tmp_path: Path) -> None:
    example = Example(languages=("en",), conditions=conditions, n=6)
    page = Page(build(tmp_path, example_records(example)))
    assert page.open == []
    if "text" not in conditions:
        assert "No typed run" in "".join(page.text)


def test_many_systems_make_a_page(tmp_path: Path) -> None:
    systems = tuple((f"recognizer-{k}", "BM25") for k in range(9))
    example = Example(languages=("en",), systems=systems, conditions=("text", "clean", "snr_5"), n=4)
    page = Page(build(tmp_path, example_records(example)))
    assert page.open == []
    assert all(f"recognizer-{k}" in "".join(page.text) for k in range(9))


def test_without_results_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        write_report(tmp_path, tmp_path / "r.html")


def test_wrong_calls_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="max_worst is -1"):
        write_report(folder, tmp_path / "r.html", max_worst=-1)
    with pytest.raises(UsageError, match="is a folder"):
        write_report(folder, tmp_path)


def test_max_worst_counts_what_is_shown_without_scripts(folder: Path, tmp_path: Path) -> None:
    out = write_report(folder, tmp_path / "r.html", max_worst=4)
    shown = [a for a in Page(out.read_text(encoding="utf-8")).all("details") if "data-system" in a]
    assert len([a for a in shown if "hidden" not in a]) == 4 * 2
    assert {a["data-system"] for a in shown} == {"0", "1", "2"}


def _style() -> str:
    import squtr.harness.report.page as module

    return (Path(module.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colors_have_contrast_in_both_themes() -> None:
    """WCAG 2.2: 4.5 for text, 3 for graphics."""
    blocks = re.findall(r"\{([^{}]*--paper:[^{}]*)\}", _style())
    assert len(blocks) == 3
    assert dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[1])) == dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[2]))
    for block in blocks:
        colors = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
        for text in ("ink", "soft", "link"):
            for under in ("paper", "panel", "typed"):
                assert _contrast(colors[text], colors[under]) >= 4.5, (text, under)
        assert _contrast(colors["del"], colors["del-paper"]) >= 4.5
        assert _contrast(colors["ins"], colors["ins-paper"]) >= 4.5
        assert _contrast(colors["ink"], colors["warn-paper"]) >= 4.5
        for series in range(6):
            assert _contrast(colors[f"s{series}"], colors["paper"]) >= 3
