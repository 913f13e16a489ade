"""A repository on the Hugging Face Hub: reading it, commits and pull requests that add files, with retries.

A commit names its parent. If someone else committed meanwhile, or the answer was lost, everything is compared anew and
tried again, so that nothing is sent twice and nobody's files go.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from ... import __version__
from ...errors import HubError, UsageError
from ..retries import Backoff
from .calls import Trouble, with_retries

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

RepoType = Literal["dataset", "model", "space"]
T = TypeVar("T")
MAIN = "main"
HUB_ADDRESS = "https://huggingface.co"

_NAME = re.compile(r"(?!.*(?:--|\.\.|\.git$))\w(?:[\w.-]*\w)?/\w(?:[\w.-]*\w)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sent:
    """A pull request: its address and reference ("" if nothing was lacking), what it adds, whether it is new."""

    repository: str
    url: str
    revision: str
    added: tuple[str, ...]
    opened: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A file in a listing: bytes, and git's id (the sha256 of a large one)."""

    size: int
    oid: str


@dataclass(frozen=True, slots=True)
class Request:
    number: int
    title: str
    author: str
    revision: str
    url: str


def is_repository(name: str) -> bool:
    """Whether a text has the form ORG/NAME.

    >>> is_repository("org/squtr-results"), is_repository("../results"), is_repository("a/b/c")
    (True, False, False)
    """
    return len(name) <= 96 and _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on the Hub. `token` and `endpoint` default to what the Hub's client is set up with."""

    name: str
    type: RepoType = "dataset"
    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    backoff: Backoff = field(default_factory=lambda: Backoff(attempts=8))
    waiting: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not is_repository(self.name):
            raise UsageError(
                f"{self.name!r} is not the name of a repository.", hint="Write ORG/NAME, or the path of a folder."
            )

    def propose(self, files: Mapping[str, bytes], *, title: str, description: str, replacing: bool = False) -> Sent:
        """Open a pull request that adds `files` (content by path), unless `main` or an open one has them all.

        Raises `HubError` for a path that `main` has with another content, unless `replacing`.
        """
        return self._call(
            f"opening a pull request on {self.name}",
            lambda: self._propose(files, title, description, replacing=replacing),
        )

    def commit(self, files: Mapping[str, bytes], *, title: str, replacing: bool = False) -> Sent:
        """Add `files` to `main` in one commit, on top of whatever was committed meanwhile; `replacing` others."""
        return self._call(f"committing to {self.name}", lambda: self._commit(files, title, replacing=replacing))

    def create_page(self, *, private: bool = False) -> None:
        """Create this Space of static files, unless it is there."""
        self._call(
            f"creating {self.name}",
            lambda: self._api().create_repo(
                self.name, repo_type=self.type, space_sdk="static", private=private, exist_ok=True
            ),
        )

    def read(self, path: str, revision: str = MAIN) -> bytes | None:
        """A file's content, None if it is not there."""
        from huggingface_hub.errors import EntryNotFoundError

        def attempt() -> bytes | None:
            with tempfile.TemporaryDirectory(prefix="squtr-hub-") as scratch:
                try:
                    found = self._api().hf_hub_download(
                        self.name, path, repo_type=self.type, revision=revision, local_dir=scratch
                    )
                except EntryNotFoundError:
                    return None
                return Path(found).read_bytes()

        return self._call(f"reading {path} of {self.name}", attempt)

    def head(self, revision: str = MAIN) -> str:
        """The commit that a revision names now."""
        return self._call(
            f"reading {self.name}",
            lambda: self._api().repo_info(self.name, repo_type=self.type, revision=revision).sha or "",
            needs_token=False,
        )

    def tree(self, revision: str = MAIN) -> dict[str, Listed]:
        """The files of a revision by their paths."""
        from huggingface_hub.hf_api import RepoFile

        def attempt() -> dict[str, Listed]:
            found = self._api().list_repo_tree(self.name, repo_type=self.type, revision=revision, recursive=True)
            return {
                entry.path: Listed(entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id)
                for entry in found
                if isinstance(entry, RepoFile)
            }

        return self._call(f"listing {self.name}", attempt, needs_token=False)

    def common_commit(self, revision: str) -> str:
        """The newest commit that a revision shares with `main`."""

        def attempt() -> str:
            api = self._api()
            ours = {c.commit_id for c in api.list_repo_commits(self.name, repo_type=self.type, revision=MAIN)}
            theirs = api.list_repo_commits(self.name, repo_type=self.type, revision=revision)
            return next((c.commit_id for c in theirs if c.commit_id in ours), MAIN)

        return self._call(f"reading the history of {self.name}", attempt, needs_token=False)

    def download(self, folder: Path | None = None, revision: str = MAIN, *, only: Sequence[str] | None = None) -> Path:
        """The files of a revision that match `only` (all by default) in a folder, or else in the Hub's cache."""

        def attempt() -> Path:
            return Path(
                self._api().snapshot_download(
                    self.name,
                    repo_type=self.type,
                    revision=revision,
                    local_dir=folder,
                    allow_patterns=None if only is None else list(only),
                    max_workers=4,
                )
            )

        return self._call(f"reading {self.name}", attempt, needs_token=False)

    def requests(self) -> list[Request]:
        def attempt() -> list[Request]:
            found = self._api().get_repo_discussions(
                self.name, repo_type=self.type, discussion_type="pull_request", discussion_status="open"
            )
            return sorted(
                (Request(r.num, r.title, r.author, r.git_reference or f"refs/pr/{r.num}", r.url) for r in found),
                key=lambda request: request.number,
            )

        return self._call(f"listing the pull requests of {self.name}", attempt, needs_token=False)

    def comment(self, number: int, text: str) -> None:
        self._call(
            f"commenting on {self.name}#{number}",
            lambda: self._api().comment_discussion(self.name, number, comment=text, repo_type=self.type),
        )

    def merge(self, number: int, text: str = "") -> None:
        self._call(
            f"merging {self.name}#{number}",
            lambda: self._api().merge_pull_request(self.name, number, comment=text or None, repo_type=self.type),
        )

    def _api(self) -> HfApi:
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint, token=self.token, library_name="squtr", library_version=__version__)

    def _head(self, api: HfApi) -> str:
        return api.repo_info(self.name, repo_type=self.type, revision=MAIN).sha or MAIN

    def _lacking(self, api: HfApi, files: Mapping[str, bytes], revision: str, *, replacing: bool) -> tuple[str, ...]:
        from huggingface_hub.hf_api import RepoFile

        found = api.get_paths_info(self.name, list(files), repo_type=self.type, revision=revision)
        there = {entry.path: entry for entry in found if isinstance(entry, RepoFile)}
        for path, entry in there.items():
            if not replacing and not holds(entry, files[path]):
                raise HubError(
                    f"{self.name} has another file at {path}.", hint="Results are never overwritten: submit it again."
                )
        return tuple(path for path in files if path not in there or not holds(there[path], files[path]))

    def _propose(self, files: Mapping[str, bytes], title: str, description: str, *, replacing: bool) -> Sent:
        from huggingface_hub import CommitOperationAdd

        api = self._api()
        head = self._head(api)
        lacking = self._lacking(api, files, head, replacing=replacing)
        if not lacking:
            return Sent(self.name, "", "", (), opened=False)
        requests = api.get_repo_discussions(
            self.name, repo_type=self.type, discussion_type="pull_request", discussion_status="open"
        )
        for request in requests:
            reference = request.git_reference
            if request.title == title and reference and not self._lacking(api, files, reference, replacing=True):
                return Sent(self.name, request.url, reference, lacking, opened=False)
        info = api.create_commit(
            self.name,
            [CommitOperationAdd(path, files[path]) for path in lacking],
            commit_message=title,
            commit_description=description,
            repo_type=self.type,
            revision=MAIN,
            create_pr=True,
            parent_commit=head,
        )
        return Sent(self.name, info.pr_url or "", info.pr_revision or "", lacking, opened=True)

    def _commit(self, files: Mapping[str, bytes], title: str, *, replacing: bool) -> Sent:
        from huggingface_hub import CommitOperationAdd

        api = self._api()
        head = self._head(api)
        lacking = self._lacking(api, files, head, replacing=replacing)
        if lacking:
            api.create_commit(
                self.name,
                [CommitOperationAdd(path, files[path]) for path in lacking],
                commit_message=title,
                repo_type=self.type,
                revision=MAIN,
                parent_commit=head,
            )
        return Sent(self.name, "", MAIN, lacking, opened=False)

    def _call(self, doing: str, action: Callable[[], T], *, needs_token: bool = True) -> T:
        from huggingface_hub import get_token

        secret = self.token or get_token() or ""
        if needs_token and not secret:
            raise HubError("you are not logged in to the Hub.", hint="Run `hf auth login`, or set HF_TOKEN.")
        return with_retries(
            action, doing=doing, token=secret, backoff=self.backoff, explain=self._refused, waiting=self.waiting
        )

    def _refused(self, trouble: Trouble) -> HubError | None:
        """What the Hub's refusal means here."""
        if trouble.status == 401:
            return HubError(
                f"the Hub does not accept this token, or {self.name} is not there for it.",
                hint="Check the name, and run `hf auth login` or set HF_TOKEN.",
            )
        if trouble.status == 403:
            return HubError(
                f"this token may not do that on {self.name}.",
                hint="Use one that may write, and see whether the repository takes pull requests.",
            )
        if trouble.status == 404:
            return HubError(
                f"there is no {self.type} {self.name} on the Hub, or this token may not see it.",
                hint="Check the name. A pull request needs a repository that exists.",
            )
        return None


def holds(remote: RepoFile, content: bytes | Path, sha256: str = "") -> bool:
    """Whether a file on the Hub has this content, whose `sha256` may be known."""
    from huggingface_hub.utils.sha import git_hash

    if remote.lfs and sha256:
        return remote.lfs.sha256 == sha256
    given = content.read_bytes() if isinstance(content, Path) else content
    return remote.lfs.sha256 == hashlib.sha256(given).hexdigest() if remote.lfs else remote.blob_id == git_hash(given)
