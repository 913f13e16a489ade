"""Talking to a repository on the Hugging Face Hub: pull requests that add files, patiently, and never a lost one.

A commit names its parent. If someone else committed meanwhile, or the answer was lost, everything is looked at anew and
tried again, so that nothing is sent twice and nobody's files go.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from .. import __version__
from ..errors import HubError, UsageError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

RepoType = Literal["dataset", "model", "space"]
T = TypeVar("T")
MAIN = "main"
HUB_ADDRESS = "https://huggingface.co"
PASSING = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same call may succeed."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_SECRET = re.compile(r"\b(?:hf|api)_[A-Za-z0-9_\-]{6,}|(?<=bearer )\S+", re.IGNORECASE)
_LONGEST_S = 60.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try, and how to wait in between: twice as long each time, with jitter."""

    attempts: int = 8
    first_s: float = 1.0
    sleep: Callable[[float], None] = time.sleep
    # The system's generator: jitter has to differ between submitters who started together.
    jitter: Callable[[], float] = random.SystemRandom().random

    def wait_s(self, attempt: int, asked_s: float = 0.0) -> float:
        """Seconds to wait after `attempt` (from 0) failed; `asked_s` is what the server asks for.

        >>> patience = Patience(jitter=lambda: 0.0)
        >>> [patience.wait_s(n) for n in (0, 1, 9)], patience.wait_s(0, 7.0)
        ([0.5, 1.0, 30.0], 7.0)
        """
        own = min(_LONGEST_S, self.first_s * 2.0**attempt) * (0.5 + self.jitter() / 2)
        return max(own, min(asked_s, 10 * _LONGEST_S))


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
    """An open pull request on a repository."""

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
    return bool(_NAME.fullmatch(name)) and len(name) <= 96 and ".." not in name and "--" not in name


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on the Hub. `token` and `endpoint` default to what the Hub's client is set up with."""

    name: str
    type: RepoType = "dataset"
    token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    patience: Patience = field(default_factory=Patience)
    waiting: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not is_repository(self.name):
            raise UsageError(
                f"{self.name!r} is not the name of a repository.", hint="Write ORG/NAME, or the path of a folder."
            )

    def propose(self, files: Mapping[str, bytes], *, title: str, description: str) -> Sent:
        """Open a pull request that adds `files` (content by path), unless `main` or an open one has them all.

        A path that `main` has with another content raises `HubError`: nothing is overwritten.
        """
        return self._patiently(
            f"opening a pull request on {self.name}", lambda: self._propose(files, title, description)
        )

    def commit(self, files: Mapping[str, bytes], *, title: str) -> Sent:
        """Add `files` to `main` in one commit, on top of whatever was committed meanwhile."""
        return self._patiently(f"committing to {self.name}", lambda: self._commit(files, title))

    def replace(self, path: str, content: bytes, *, title: str, description: str) -> Sent:
        """Open a pull request that adds or replaces one file."""
        return self._patiently(
            f"opening a pull request on {self.name}",
            lambda: self._propose({path: content}, title, description, replacing=True),
        )

    def create_page(self, *, private: bool = False) -> None:
        """Create this Space of static files, unless it is there."""
        self._patiently(
            f"creating {self.name}",
            lambda: self._api().create_repo(
                self.name, repo_type=self.type, space_sdk="static", private=private, exist_ok=True
            ),
        )

    def publish(self, files: Mapping[str, bytes], *, title: str) -> Sent:
        """Add or replace `files` on `main` in one commit, on top of whatever was committed meanwhile."""
        return self._patiently(f"committing to {self.name}", lambda: self._commit(files, title, replacing=True))

    def commit_id(self, revision: str = MAIN) -> str:
        """The newest commit of a revision."""
        return self._patiently(
            f"looking at {self.name}",
            lambda: self._api().repo_info(self.name, repo_type=self.type, revision=revision).sha or "",
            needs_token=False,
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

        return self._patiently(f"reading {path} of {self.name}", attempt)

    def head(self, revision: str = MAIN) -> str:
        """The commit that a revision names now."""
        return self._patiently(
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

        return self._patiently(f"listing {self.name}", attempt, needs_token=False)

    def common_commit(self, revision: str) -> str:
        """The newest commit that a revision shares with `main`."""

        def attempt() -> str:
            api = self._api()
            ours = {c.commit_id for c in api.list_repo_commits(self.name, repo_type=self.type, revision=MAIN)}
            theirs = api.list_repo_commits(self.name, repo_type=self.type, revision=revision)
            return next((c.commit_id for c in theirs if c.commit_id in ours), MAIN)

        return self._patiently(f"reading the history of {self.name}", attempt, needs_token=False)

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

        return self._patiently(f"reading {self.name}", attempt, needs_token=False)

    def requests(self) -> list[Request]:
        """The open pull requests, oldest first."""

        def attempt() -> list[Request]:
            found = self._api().get_repo_discussions(
                self.name, repo_type=self.type, discussion_type="pull_request", discussion_status="open"
            )
            return sorted(
                (Request(r.num, r.title, r.author, r.git_reference or f"refs/pr/{r.num}", r.url) for r in found),
                key=lambda request: request.number,
            )

        return self._patiently(f"listing the pull requests of {self.name}", attempt, needs_token=False)

    def comment(self, number: int, text: str) -> None:
        """Write under a pull request."""
        self._patiently(
            f"commenting on {self.name}#{number}",
            lambda: self._api().comment_discussion(self.name, number, comment=text, repo_type=self.type),
        )

    def merge(self, number: int, text: str = "") -> None:
        """Merge a pull request."""
        self._patiently(
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
            if not replacing and not _same(files[path], entry):
                raise HubError(
                    f"{self.name} has another file at {path}.", hint="Results are never overwritten: submit it again."
                )
        return tuple(path for path in files if path not in there or not _same(files[path], there[path]))

    def _propose(self, files: Mapping[str, bytes], title: str, description: str, *, replacing: bool = False) -> Sent:
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

    def _commit(self, files: Mapping[str, bytes], title: str, *, replacing: bool = False) -> Sent:
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

    def _patiently(self, doing: str, action: Callable[[], T], *, needs_token: bool = True) -> T:
        from huggingface_hub import get_token

        secret = self.token or get_token() or ""
        if needs_token and not secret:
            raise HubError("you are not logged in to the Hub.", hint="Run `hf auth login`, or set HF_TOKEN.")
        patience = self.patience
        for attempt in range(patience.attempts):
            try:
                return action()
            except Exception as error:
                trouble = _diagnose(error, secret)
                if trouble is None:
                    raise
            # Outside of `except`: the client's exception holds the request's headers, and is not passed on.
            if not trouble.passing or attempt == patience.attempts - 1:
                raise self._lasting(trouble, doing)
            wait_s = patience.wait_s(attempt, trouble.asked_s)
            if self.waiting:
                self.waiting(f"{doing}: {trouble.said}; again in {wait_s:.0f} s")
            patience.sleep(wait_s)
        raise HubError(f"{doing} was never tried.", hint="Allow at least one attempt.")

    def _lasting(self, trouble: _Trouble, doing: str) -> HubError:
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
        hint = "Run the same command again later." if trouble.passing else "Change that, then run it again."
        return HubError(f"{doing} failed: {trouble.said}.", hint=hint)


@dataclass(frozen=True, slots=True)
class _Trouble:
    """What an error of the client means: `status` is 0 without an answer."""

    status: int
    passing: bool
    asked_s: float
    said: str


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def _diagnose(error: BaseException, token: str) -> _Trouble | None:
    """What an exception of `huggingface_hub` means, None if it does not come from talking to the Hub."""
    from httpx2 import TransportError
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    def hidden(text: str) -> str:
        line = " ".join(text.split())
        return _SECRET.sub("***", line.replace(token, "***") if token else line).rstrip(".")

    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, OfflineModeIsEnabled):
            return _Trouble(0, passing=False, asked_s=0.0, said="HF_HUB_OFFLINE is set")
        if isinstance(cause, HfHubHTTPError):
            status = cause.response.status_code
            after = cause.response.headers.get("Retry-After", "")
            said = hidden(cause.server_message or str(cause).partition("\n")[0])
            asked_s = float(after) if after.isdigit() else 0.0
            return _Trouble(status, status in PASSING, asked_s, f"the Hub answered {status} ({said})")
    for cause in causes:
        if isinstance(cause, TransportError | ConnectionError | TimeoutError | LocalEntryNotFoundError):
            said = hidden(str(cause) or type(cause).__name__)
            return _Trouble(0, passing=True, asked_s=0.0, said=f"no answer from the Hub ({said})")
    return None


def _same(content: bytes, remote: RepoFile) -> bool:
    from huggingface_hub.utils.sha import git_hash

    if remote.lfs:
        return remote.lfs.sha256 == hashlib.sha256(content).hexdigest()
    return remote.blob_id == git_hash(content)
