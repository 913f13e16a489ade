"""What the tasks say about themselves: names, languages, licenses, citation. Nothing here needs `mteb`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ...loaders.conditions import TEXT, parse_condition
from ...loaders.hub.evaluation_file import control_name, task_name
from ...loaders.licenses import OTHER, merge_licenses
from ..benchmarks import BENCHMARKS

REFERENCE = "https://arxiv.org/abs/2602.12783"
PUBLISHED = ("2026-02-01", "2026-02-28")
"""The month in which the published subsets appeared: when their texts were spoken, the paper does not say by day."""

CITATION = """@misc{li2026squtr,
  archiveprefix = {arXiv},
  author = {Yuejie Li and Ke Yang and Yueying Hua and Berlin Chen and Jianhao Nie and Yueping He and Caixin Kang},
  eprint = {2602.12783},
  primaryclass = {cs.IR},
  title = {SQuTR: A Robustness Benchmark for Spoken Query to Text Retrieval under Acoustic Noise},
  url = {https://arxiv.org/abs/2602.12783},
  year = {2026},
}"""

BENCHMARK = BENCHMARKS["squtr"]
"""The benchmark whose tasks these are; its metrics are read back from mteb's results."""

ORIGINALS: Mapping[str, str] = {
    "fiqa": "FiQA2018", "hotpotqa": "HotpotQA", "nq": "NQ", "medicalretrieval": "MedicalRetrieval",
    "duretrieval": "DuRetrieval", "t2retrieval": "T2Retrieval",
}  # fmt: skip
"""The mteb task whose texts a published subset has: its prompt, domains and citation are taken from there."""

TAGS: Mapping[str, str] = {
    "ar": "ara-Arab", "bn": "ben-Beng", "ca": "cat-Latn", "cs": "ces-Latn", "da": "dan-Latn", "de": "deu-Latn",
    "el": "ell-Grek", "en": "eng-Latn", "es": "spa-Latn", "eu": "eus-Latn", "fi": "fin-Latn", "fr": "fra-Latn",
    "gl": "glg-Latn", "he": "heb-Hebr", "hi": "hin-Deva", "hu": "hun-Latn", "id": "ind-Latn", "it": "ita-Latn",
    "ja": "jpn-Jpan", "ko": "kor-Hang", "nl": "nld-Latn", "no": "nob-Latn", "pl": "pol-Latn", "pt": "por-Latn",
    "ro": "ron-Latn", "ru": "rus-Cyrl", "sv": "swe-Latn", "th": "tha-Thai", "tr": "tur-Latn", "uk": "ukr-Cyrl",
    "vi": "vie-Latn", "zh": "cmn-Hans",
}  # fmt: skip

LANGUAGE_NAMES: Mapping[str, str] = {"en": "English", "es": "Spanish", "zh": "Chinese"}

_MTEB_LICENSES = {
    "apache-2.0", "bsd-3-clause", "cc-by-3.0", "cc-by-4.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-sa-3.0",
    "cc-by-nc-sa-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc0-1.0", "mit", "odc-by",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task: one subset, with spoken queries under several conditions or with the typed ones.

    `configs` maps the names that mteb calls subsets (`fiqa_clean`) to conditions; `fiqa_text` is the typed queries.
    """

    subset: str
    language: str
    configs: Mapping[str, str]
    path: str
    revision: str

    @property
    def spoken(self) -> bool:
        """Whether the queries are spoken."""
        return TEXT not in self.configs.values()

    @property
    def name(self) -> str:
        """As mteb shows it.

        >>> TaskInfo("fiqa", "en", {"fiqa_text": "text"}, "data", "1").name
        'SQuTRFiQAText'
        """
        return task_name(self.subset) if self.spoken else control_name(self.subset)

    @property
    def tag(self) -> str:
        """Language and script."""
        return language_tag(self.language)

    @property
    def description(self) -> str:
        """What the task asks, in two sentences."""
        language = LANGUAGE_NAMES.get(self.language, self.language)
        origin = ORIGINALS.get(self.subset, self.subset)
        if not self.spoken:
            return (
                f"The typed queries of {task_name(self.subset)}, in {language}, against the same passages: the upper"
                " bound of what a system that gets their audio can reach."
            )
        conditions = ", ".join(condition_label(condition) for condition in self.configs.values())
        return (
            f"Spoken queries in {language} to written passages ({origin}), the same queries under each condition:"
            f" {conditions}. How much is lost when a query is spoken, in noise and in rooms?"
        )


def language_tag(language: str) -> str:
    """Language and script of a language code, as mteb writes them.

    Raises `UsageError` for a code that is not in the table.

    >>> language_tag("zh"), language_tag("en"), language_tag("zh-TW")
    ('cmn-Hans', 'eng-Latn', 'cmn-Hant')
    """
    if language in {"zh-TW", "zh-HK", "zh-Hant"}:
        return "cmn-Hant"
    tag = TAGS.get(language) or TAGS.get(language.partition("-")[0])
    if tag is None:
        raise UsageError(
            f"the language {language!r} has no code of mteb here.", hint=f"Known: {', '.join(sorted(TAGS))}."
        )
    return tag


def language_of(tags: Sequence[str]) -> str:
    """The language code of mteb's language and script tags, as the parts of a system know it.

    Raises `UsageError` for none, for several, and for one that is not in the table.

    >>> language_of(["cmn-Hans"]), language_of(["zho-Hant"]), language_of(["eng-Latn"])
    ('zh', 'zh', 'en')
    """
    spoken = {"cmn" if tag.startswith("zho-") else tag.partition("-")[0] for tag in tags}
    found = [code for code, tag in TAGS.items() if tag.partition("-")[0] in spoken]
    if len(spoken) != 1 or not found:
        raise UsageError(
            f"a task of mteb is in {', '.join(sorted(tags)) or 'no language'}, where one known language is needed.",
            hint=f"Known: {', '.join(sorted(TAGS.values()))}.",
        )
    return found[0]


def condition_label(condition: str) -> str:
    """A condition as a column's head.

    >>> [condition_label(c) for c in ("clean", "medium_noise", "reverb", "reverb_snr_-5", "text")]
    ['clean', '10 dB', 'reverb', 'reverb + -5 dB', 'text']
    """
    if condition == TEXT:
        return TEXT
    parsed = parse_condition(condition)
    if parsed.snr_db is None:
        return "reverb" if parsed.reverb else "clean"
    level = f"{parsed.snr_db:g} dB"
    return f"reverb + {level}" if parsed.reverb else level


def mteb_license(statements: Sequence[str]) -> str:
    """The strictest of these licenses as mteb writes it, `multiple` where they do not merge to one that it knows.

    >>> mteb_license(["CC-BY-SA-4.0"]), mteb_license(["CC0-1.0", "ask the author"])
    ('cc-by-sa-4.0', 'multiple')
    """
    merged = merge_licenses(statement for statement in statements if statement)
    return merged if merged != OTHER and merged in _MTEB_LICENSES else "multiple"
