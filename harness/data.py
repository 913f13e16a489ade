"""The data that an evaluation reads, by name."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataError, HubError, UsageError, unknown_name
from ..loaders.conditions import STANDARD_CONDITIONS, TEXT, parse_condition
from ..loaders.data import TEST, BuiltData, LiveData, SpeechData, utterances
from ..loaders.hub.calls import Trouble, with_retries
from ..loaders.manifest import MANIFEST_NAME, Manifest, Shard, kind_of
from ..loaders.records import Query, SpokenQuery
from ..loaders.retries import Backoff

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from ..loaders.questions.data import QuestionData

MINI = "mini"
QUESTIONS = "questions"
_FORMS = "a folder that `squtr build` wrote, mini, release:PATH or ORG/NAME[@REVISION] on the Hub"
_SIDE_FILES = ("README.md", "eval.yaml", MANIFEST_NAME)

_REPOSITORY = re.compile(r"[A-Za-z0-9_][\w.-]*/\w[\w.-]*", re.ASCII)
_REVISION = re.compile(r"\w[\w./-]*", re.ASCII)


def names_source(name: str, kind: str = "") -> bool:
    """Whether `name` is written as a source of speech (of one kind, if named).

    >>> names_source("release:SQuTR.zip", "release"), names_source("./release"), names_source("mini")
    (True, False, True)
    """
    from ..loaders.sources import SOURCES

    found = name.partition("?")[0].partition(":")[0]
    return found in SOURCES and kind in {found, ""}


def open_data(
    name: str,
    *,
    configs: Sequence[str] | None = None,
    split: str = TEST,
    on_bad: str = "refuse",
    api: HfApi | None = None,
    backoff: Backoff | None = None,
) -> SpeechData | QuestionData:
    """Open data by name: a folder that was built, a source of speech, questions, or `ORG/NAME[@REVISION]` on the Hub.

    Sources such as `mini` are rendered on the fly under the standard conditions and those that `configs` name;
    `release:PATH` is read. Questions are `questions` (built into `$SQUTR_HOME`), `questions:mini` or a fetched set. Of
    speech on the Hub, only the shards that `configs` (patterns too; None: all) and `split` need are downloaded. An
    existing folder goes before a source's bare name and the Hub. `on_bad` is that of `load_source`. `api` and `backoff`
    replace the Hub's client and waits.

    Raises `DataError`, `HubError`, `UnknownNameError` for a config or split that is not there, and what a source
    raises.
    """
    from ..loaders.questions.data import names_questions, open_questions
    from ..loaders.sources.rules import check_on_bad

    folder = Path(name).expanduser()
    kind, _, place = name.partition(":")
    if check_on_bad(on_bad) != "refuse" and (not names_source(name) or (folder.is_dir() and not place)):
        raise UsageError(
            f"on_bad={on_bad!r} is of sources, and {name} is none.",
            hint="Leave it out: what was built was checked then, see `left_out` in its manifest.",
        )
    if kind == QUESTIONS and not folder.exists():
        return open_questions(place or None)
    if folder.is_dir() and not (names_source(name) and place):
        return open_questions(name) if _holds_questions(folder) else _open_folder(folder, name, split)
    if names_questions(name):
        return open_questions(name)
    if names_source(name):
        return _open_source(name, configs, split, on_bad)
    repository, separator, revision = name.partition("@")
    if _REPOSITORY.fullmatch(repository) and not folder.exists():
        if separator and not _REVISION.fullmatch(revision):
            raise UsageError(
                f"{revision!r} in {name!r} is no revision.", hint="Write ORG/NAME@<branch, tag or commit>."
            )
        return _open_hub(repository, revision, configs=configs, split=split, api=api, backoff=backoff)
    if folder.exists():
        raise DataError(f"{name} is a file.", hint=f"Give {_FORMS}.")
    raise DataError(f"{name} does not exist.", hint=f"Run `squtr build` first, or give {_FORMS}.")


def open_speech(name: str, *, configs: Sequence[str] | None = None, split: str = TEST) -> SpeechData:
    """`open_data` where speech alone will do. Raises `UsageError` for questions."""
    from ..loaders.questions.data import QuestionData

    data = open_data(name, configs=configs, split=split)
    if isinstance(data, QuestionData):
        raise UsageError(f"{name} holds questions.", hint="Give data of speech.")
    return data


def _holds_questions(folder: Path) -> bool:
    from ..loaders.questions.data import find_set

    return kind_of(folder) == QUESTIONS or (not kind_of(folder) and find_set(folder))


def _open_folder(folder: Path, name: str, split: str) -> BuiltData:
    try:
        return BuiltData(folder, split)
    except DataError as error:
        if (folder / MANIFEST_NAME).exists() or not (name == MINI or _REPOSITORY.fullmatch(name)):
            raise
        # The folder went before what the name may have been meant for.
        raise DataError(
            error.message,
            hint=f"{name} was taken for the folder here. Run `squtr build` first, or start in another folder if "
            f"{'the embedded collection' if name == MINI else 'the data set on the Hub'} is meant.",
        ) from error


def _open_source(name: str, configs: Sequence[str] | None, split: str, on_bad: str) -> SpeechData:
    from ..loaders.recipe import open_recipe
    from ..loaders.sources import Published, load_source

    source = load_source(name, on_bad=on_bad)
    if isinstance(source, Published):
        return source.published(split)
    # All standard conditions, whatever is asked for: rendering waits until it is read, and results of several
    # evaluations are about the same data.
    conditions = dict.fromkeys(STANDARD_CONDITIONS)
    for config in configs or ():
        condition = config.partition("_")[2]
        if condition and condition != TEXT and not _is_pattern(config):
            conditions[parse_condition(condition).name] = None
    return LiveData(open_recipe(source, conditions=list(conditions)), split)


def _is_pattern(config: str) -> bool:
    return any(sign in config for sign in "*?[")


def needed_parts(
    configs: Sequence[str] | None, subsets: Mapping[str, str], conditions: Sequence[str]
) -> dict[str, list[str]]:
    """The conditions of each subset that `configs` (None: all) need, in the data's order.

    A subset that is asked for as `text` alone needs no audio, but its queries stand beside the audio of some
    condition: it gets the first. Raises `UnknownNameError` for a config that is not there.

    >>> needed_parts(["zh_clean", "fiqa_text"], {"fiqa": "en", "nq": "en", "duretrieval": "zh"}, ["clean", "reverb"])
    {'fiqa': ['clean'], 'duretrieval': ['clean']}
    >>> needed_parts(["*_reverb"], {"fiqa": "en", "duretrieval": "zh"}, ["clean", "reverb"])
    {'fiqa': ['reverb'], 'duretrieval': ['reverb']}
    """
    if configs is None:
        return {subset: list(conditions) for subset in subsets}
    languages = dict.fromkeys(subsets.values())
    known = [f"{scope}_{condition}" for scope in (*languages, *subsets) for condition in (TEXT, *conditions)]
    of_languages = [name for name in known if name.partition("_")[0] in languages]
    wanted: dict[str, set[str]] = {}
    for config in configs:
        names = [config]
        if _is_pattern(config):
            # A pattern means languages, and subsets only where it matches no language.
            names = fnmatch.filter(of_languages, config) or fnmatch.filter(known, config)
        if not names or names[0] not in known:
            raise unknown_name("config", config, known)
        for name in names:
            scope, _, condition = name.partition("_")
            for subset, language in subsets.items():
                if subset == scope or (language == scope and scope not in subsets):
                    wanted.setdefault(subset, set()).add(condition)
    return {
        subset: [c for c in conditions if c in wanted[subset]] or list(conditions[:1])
        for subset in subsets
        if subset in wanted
    }


class HubData(BuiltData):
    """A downloaded part of a built data set: `parts` are each subset's conditions, `origin` is `ORG/NAME@<commit>`."""

    def __init__(self, folder: Path, origin: str, parts: Mapping[str, Sequence[str]], split: str = TEST) -> None:
        super().__init__(folder, split)
        self.origin = origin
        self._parts = parts
        self.subsets = {subset: language for subset, language in self.manifest.subsets.items() if subset in parts}
        self.conditions = [c for c in self.manifest.conditions if any(c in at_hand for at_hand in parts.values())]

    def queries(self, subset: str) -> Sequence[Query]:
        self._check(subset)
        return utterances(self.rows(subset, self._parts[subset][0]))

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        """The rows of a condition. Raises `DataError` for what was not downloaded."""
        self._check(subset, condition)
        return super().rows(subset, condition)

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """Read the spoken queries at positions `start` to `stop`. Raises `DataError` for what was not downloaded."""
        self._check(subset, condition)
        return super().spoken(subset, condition, start=start, stop=stop)

    def _check(self, subset: str, condition: str = "") -> None:
        at_hand = self._parts.get(subset, ())
        if not at_hand or (condition and condition not in at_hand):
            what = f"{subset} under {condition}" if condition else subset
            raise DataError(f"{what} of {self.origin} was not downloaded.", hint="Name its config when opening it.")


def _open_hub(
    repository: str,
    revision: str,
    *,
    configs: Sequence[str] | None,
    split: str,
    api: HfApi | None,
    backoff: Backoff | None,
) -> HubData | QuestionData:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import EntryNotFoundError

    client = api or HfApi(library_name="squtr")
    written = f"{repository}@{revision}" if revision else repository
    tried = f"there is no folder {repository} here, and on the Hub"

    def explain(trouble: Trouble) -> HubError:
        if trouble.status in (401, 403, 404):
            return HubError(
                f"{tried} no data set {written} that you may read (the Hub answered {trouble.status}).",
                hint=f"Check the name, or log in with `hf auth login`. Data is {_FORMS}.",
            )
        return HubError(
            f"{tried} {written} cannot be read: {trouble.message.rstrip('.') or 'no answer'}.",
            hint=f"Check the path and the network. Data is {_FORMS}.",
        )

    def fetch_manifest() -> Path | None:
        try:
            found = client.hf_hub_download(repository, MANIFEST_NAME, repo_type="dataset", revision=revision or None)
        except EntryNotFoundError as error:
            # Without the network, the client says the same of everything that it does not have.
            if isinstance(error, FileNotFoundError):
                raise HubError(
                    f"{tried} {written} cannot be reached, nor is it in the cache of an earlier download.",
                    hint=f"Check the path and the network (is HF_HUB_OFFLINE set?). Data is {_FORMS}.",
                ) from None
            return None
        return Path(found)

    # A path that is mistyped can look like a repository: do not wait long to say so.
    path = with_retries(
        fetch_manifest, doing=f"reading {written}", backoff=backoff or Backoff(attempts=2), explain=explain
    )
    if path is None:
        raise DataError(
            f"the data set {written} on the Hub is not one that squtr built: {MANIFEST_NAME} is missing.",
            hint="Publish one with `squtr build` and `squtr push`.",
        )
    folder, commit = path.parent, path.parent.name
    if kind_of(folder) == QUESTIONS:
        from ..loaders.questions.data import open_questions

        with_retries(
            lambda: client.snapshot_download(repository, repo_type="dataset", revision=commit),
            doing=f"downloading {repository}@{commit[:8]}",
            backoff=backoff,
        )
        return open_questions(str(folder))
    data = BuiltData(folder, split)  # checks the manifest
    parts = needed_parts(configs, data.subsets, data.conditions)
    shards = _needed_shards(data.manifest, parts, split)
    with_retries(
        lambda: client.snapshot_download(
            repository,
            repo_type="dataset",
            revision=commit,
            allow_patterns=[*_SIDE_FILES, *(_literal(shard.path) for shard in shards)],
        ),
        doing=f"downloading {repository}@{commit[:8]}",
        backoff=backoff,
    )
    for shard in shards:
        there = folder / shard.path
        size = there.stat().st_size if there.is_file() else None
        if size != shard.bytes:
            state = "was not downloaded" if size is None else f"has {size} bytes, the manifest says {shard.bytes}"
            raise HubError(
                f"{shard.path} of {repository}@{commit[:8]} {state}.",
                hint="Check the network (is HF_HUB_OFFLINE set?) and run the same command again.",
            )
    return HubData(folder, f"{repository}@{commit}", parts, split)


def _needed_shards(manifest: Manifest, parts: Mapping[str, Sequence[str]], split: str) -> list[Shard]:
    folders = [
        f"queries/{manifest.subsets[subset]}/{subset}/{condition}" for subset in parts for condition in parts[subset]
    ]
    shards = [shard for folder in (*folders, "rirs") for shard in manifest.below(folder, split)]
    tables = [f"{table}/{subset}" for table in ("corpus", "qrels") for subset in parts]
    return shards + [shard for table in tables for shard in manifest.below(table)]


def _literal(path: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path)
