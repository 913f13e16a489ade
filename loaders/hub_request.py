"""Offering files to someone's data set on the Hub as a pull request: once, and nothing that is there already."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import __version__
from ..errors import HubError
from .hub_retry import Backoff, Trouble, patiently
from .push import MAIN, check_repository

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile


@dataclass(frozen=True, slots=True)
class RequestReport:
    """What was offered: the address of the pull request and its reference, both "" if the repository has all files.

    `uploaded` are the paths that it lacked, `opened` whether the request was opened now (else it was open already).
    """

    repository: str
    pull_request: str
    revision: str
    uploaded: tuple[str, ...]
    opened: bool


def open_request(
    repo_id: str,
    files: Mapping[str, bytes],
    *,
    title: str,
    description: str,
    token: str | None = None,
    endpoint: str | None = None,
    backoff: Backoff | None = None,
    waiting: Callable[[str], None] | None = None,
) -> RequestReport:
    """Open a pull request on the data set `repo_id` that adds or replaces `files` (content by path), and nothing else.

    The repository must exist; reading it is enough. Files that `main` has with the same content are not sent; an open
    request with this title and content is found again, also after an answer that was lost. `token` and `endpoint`
    default to what the Hub's client is set up with. Raises `UsageError` for a wrong name, `HubError` if the Hub refuses
    or cannot be reached.
    """
    from huggingface_hub import HfApi, get_token

    check_repository(repo_id)
    secret = token or get_token()
    if not secret:
        raise HubError("you are not logged in to the Hub.", hint="Run `hf auth login`, or set HF_TOKEN.")
    api = HfApi(endpoint=endpoint, token=secret, library_name="squtr", library_version=__version__)
    offer = _Offer(api, repo_id, files, title, description)
    return patiently(
        offer.attempt,
        doing=f"opening a pull request on {repo_id}",
        token=secret,
        backoff=backoff,
        explain=offer.explain,
        waiting=waiting,
    )


@dataclass(frozen=True, slots=True)
class _Offer:
    api: HfApi
    repo_id: str
    files: Mapping[str, bytes]
    title: str
    description: str

    def attempt(self) -> RequestReport:
        """Compared anew every time: the request may have arrived, and only the answer been lost."""
        from huggingface_hub import CommitOperationAdd

        head = self.api.repo_info(self.repo_id, repo_type="dataset", revision=MAIN).sha or MAIN
        lacking = self._lacking(head)
        if not lacking:
            return RequestReport(self.repo_id, "", "", (), opened=False)
        requests = self.api.get_repo_discussions(
            self.repo_id, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
        )
        for request in requests:
            reference = request.git_reference
            if request.title == self.title and reference and not self._lacking(reference):
                return RequestReport(self.repo_id, request.url, reference, lacking, opened=False)
        info = self.api.create_commit(
            self.repo_id,
            [CommitOperationAdd(path, self.files[path]) for path in lacking],
            commit_message=self.title,
            commit_description=self.description,
            repo_type="dataset",
            revision=MAIN,
            create_pr=True,
            parent_commit=head,
        )
        return RequestReport(self.repo_id, info.pr_url or "", info.pr_revision or "", lacking, opened=True)

    def _lacking(self, revision: str) -> tuple[str, ...]:
        """The files that a revision does not have with this content."""
        from huggingface_hub.hf_api import RepoFile

        there = self.api.get_paths_info(self.repo_id, list(self.files), repo_type="dataset", revision=revision)
        same = {found.path for found in there if isinstance(found, RepoFile) and self._is(found)}
        return tuple(path for path in self.files if path not in same)

    def _is(self, remote: RepoFile) -> bool:
        from huggingface_hub.utils.sha import git_hash

        content = self.files[remote.path]
        if remote.lfs:
            return remote.lfs.sha256 == hashlib.sha256(content).hexdigest()
        return remote.blob_id == git_hash(content)

    def explain(self, trouble: Trouble) -> HubError | None:
        """What the Hub's refusal means here."""
        if trouble.status == 401:
            return HubError(
                f"the Hub does not accept this token, or {self.repo_id} is not there for it.",
                hint="Check the name, and run `hf auth login` or set HF_TOKEN.",
            )
        if trouble.status == 403:
            return HubError(
                f"this token may not open a pull request on {self.repo_id}.",
                hint="Use one that may write, and see whether the repository takes pull requests.",
            )
        if trouble.status == 404:
            return HubError(
                f"there is no data set {self.repo_id} on the Hub, or this token may not see it.",
                hint="Check the name. A pull request needs a repository that exists.",
            )
        return None
