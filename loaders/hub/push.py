"""Publishing a built folder on the Hub: checked first, one commit where possible, and nothing that is there already.

What the Hub holds of the same recipe stays: a part that is pushed is added to it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...errors import HubError, IntegrityError, UsageError
from ..card import REPOSITORY_PLACEHOLDER
from ..content_checks import check_content
from ..manifest import MANIFEST_NAME, Manifest, Shard, read_any_manifest
from ..retries import Backoff
from ..shard_checks import CARD_NAME, Progress, check_shards, is_shard_path
from ..side_files import side_contents
from .calls import Result, Trouble, with_retries
from .repository import MAIN, holds, is_repository
from .union import published_manifest, union

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
    from huggingface_hub.hf_api import RepoFile

FILES_PER_COMMIT = 2000
"""More files than this go in several commits, the manifest in the last. Full SQuTR has about 100."""

_REVISION = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$|[/.]$))[A-Za-z0-9_][A-Za-z0-9_./\-]*")


@dataclass(frozen=True, slots=True)
class PushReport:
    """`commit` holds the data set now, pushed or found ("": none); `commits` is 0 where nothing was to do.

    `uploaded` and `deleted` are paths, `unchanged` counts files that the Hub had, `bytes` is what was uploaded.
    """

    repository: str
    url: str
    revision: str
    commit: str
    pull_request: str
    tag: str
    uploaded: tuple[str, ...]
    deleted: tuple[str, ...]
    unchanged: int
    bytes: int
    commits: int


@dataclass(frozen=True, slots=True)
class _File:
    """A file to publish: its place in the repository, its content or path, its size and digests."""

    path: str
    content: bytes | Path
    size: int
    sha256: str

    def is_at(self, remote: RepoFile | None) -> bool:
        return remote is not None and remote.size == self.size and holds(remote, self.content, self.sha256)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a revision lacks (in the order of upload), which shards it has too much, its newest commit, and how many
    files are the data set then."""

    add: tuple[_File, ...]
    delete: tuple[str, ...]
    head: str
    files: int

    @property
    def empty(self) -> bool:
        return not self.add and not self.delete


def push(
    folder: Path,
    repo_id: str,
    *,
    private: bool = False,
    create_pr: bool = False,
    tag: str | None = None,
    revision: str | None = None,
    replace: bool = False,
    token: str | None = None,
    endpoint: str | None = None,
    backoff: Backoff | None = None,
    progress: Progress | None = None,
    waiting: Callable[[str], None] | None = None,
) -> PushReport:
    """Publish `folder` as the data set `repo_id` ("org/name") on the Hub.

    The repository (`private`: for its members only) and the branch `revision` are created if needed; `create_pr` opens
    a pull request instead; `tag` names the commit. What the Hub has is not sent again, so a stopped push continues.
    Subsets and conditions of the same recipe that the Hub holds already stay, and card and manifest are those of both;
    with `replace`, it holds what `folder` holds and nothing else. Audio that is sent is decoded before. `token` and
    `endpoint` default to those of the Hub's client; the token is neither printed nor written, and cut out of what the
    server says.

    Raises `UsageError` for a wrong name or contradicting options, `DataError` if the folder was not built by squtr,
    `RecipeMismatchError` if the Hub holds another recipe, `IntegrityError` if the folder is incomplete, changed or
    damaged, `HubError` if the Hub refuses or cannot be reached.
    """
    from huggingface_hub import HfApi, get_token

    _check_names(repo_id, tag, revision, create_pr=create_pr)
    manifest = read_any_manifest(folder)
    secret = token or get_token()
    if not secret:
        raise HubError("you are not logged in to the Hub.", hint="Run `hf auth login`, or set HF_TOKEN.")
    _check_whole(folder, manifest, progress)
    api = HfApi(endpoint=endpoint, token=secret, library_name="squtr", library_version=__version__)
    return _Push(
        api=api,
        token=secret,
        repo_id=repo_id,
        folder=folder,
        manifest=manifest,
        replace=replace,
        progress=progress,
        title=f"Upload the squtr data set {manifest.recipe_fingerprint}",
        backoff=backoff or Backoff(),
        waiting=waiting,
    ).run(revision or MAIN, private=private, create_pr=create_pr, tag=tag)


def _check_names(repo_id: str, tag: str | None, revision: str | None, *, create_pr: bool) -> None:
    if not is_repository(repo_id):
        raise UsageError(
            f"{repo_id!r} is not the name of a repository.",
            hint="Write ORG/NAME: letters, digits, '-', '_' and '.', at most 96.",
        )
    for name, value in (("tag", tag), ("revision", revision)):
        if value is not None and not _REVISION.fullmatch(value):
            raise UsageError(f"{value!r} is not a {name} that git accepts.", hint="Use a name like v1.0.")
    if create_pr and tag:
        raise UsageError(
            "a pull request cannot be tagged before it is merged.", hint="Leave --tag out, and tag after merging."
        )
    if create_pr and revision not in {None, MAIN}:
        raise UsageError(f"a pull request goes to {MAIN}, not to {revision!r}.", hint="Leave --revision out.")


def _check_whole(folder: Path, manifest: Manifest, progress: Progress | None) -> None:
    """Compare the files with the manifest."""
    findings, _ = check_shards(folder, manifest, progress)
    # What is not in the manifest stays at home.
    wrong = [finding for finding in findings if finding.kind not in {"extra", "leftover"}]
    if wrong:
        more = f" (and {len(wrong) - 1} more: see `squtr doctor {folder}`)" if len(wrong) > 1 else ""
        raise IntegrityError(
            f"{folder} is not complete: {wrong[0].message}{more}.", hint="Run the same `squtr build` again."
        )


def _side_file(name: str, content: bytes, repo_id: str) -> _File:
    if name == CARD_NAME:
        content = content.replace(REPOSITORY_PLACEHOLDER.encode(), repo_id.encode())
    return _File(name, content, len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a commit goes: a revision, with a pull request still to open to it or the address of an open one."""

    revision: str
    to_open: bool = False
    pull_request: str = ""


@dataclass(frozen=True, slots=True)
class _Push:
    api: HfApi
    token: str = field(repr=False)
    repo_id: str
    folder: Path
    manifest: Manifest
    replace: bool
    progress: Progress | None
    title: str
    backoff: Backoff
    waiting: Callable[[str], None] | None
    decoded: set[str] = field(default_factory=set)
    """Paths of the shards that were read to their end."""

    def run(self, revision: str, *, private: bool, create_pr: bool, tag: str | None) -> PushReport:
        self._prepare(revision, private=private, create_branch=not create_pr)
        target = _Target(revision, to_open=create_pr)
        uploaded: dict[str, int] = {}
        deleted: dict[str, None] = {}
        commits, most = 0, len(self.manifest.shards) // FILES_PER_COMMIT + 4
        while True:
            # The last round finds nothing to do: everything has arrived.
            target, plan, committed = self._patiently(partial(self._step, target), f"pushing to {self.repo_id}")
            if not committed:
                break
            commits += 1
            uploaded |= {file.path: file.size for file in plan.add}
            deleted |= dict.fromkeys(plan.delete)
            if commits > most:
                raise HubError(
                    f"after {commits} commits {self.repo_id} still lacks files, first {plan.add[0].path}.",
                    hint="See whether someone else pushes to it at the same time.",
                )
        if tag:
            self._tag(tag, plan.head)
        return PushReport(
            repository=self.repo_id,
            url=f"{self.api.endpoint}/datasets/{self.repo_id}",
            revision=target.revision,
            commit=plan.head,
            pull_request=target.pull_request,
            tag=tag or "",
            uploaded=tuple(uploaded),
            deleted=tuple(deleted),
            unchanged=plan.files - len(uploaded),
            bytes=sum(uploaded.values()),
            commits=commits,
        )

    def _patiently(self, action: Callable[[], Result], doing: str) -> Result:
        return with_retries(
            action, doing=doing, token=self.token, backoff=self.backoff, explain=self._explain, waiting=self.waiting
        )

    def _explain(self, trouble: Trouble) -> HubError | None:
        if trouble.status == 401:
            return HubError(
                "the Hub does not accept this token.", hint="Run `hf auth login`, or set HF_TOKEN to a valid one."
            )
        if trouble.status == 403:
            return HubError(
                f"this token may not write to {self.repo_id}.",
                hint="Use one with write permission there, or offer a pull request with --create-pr.",
            )
        if trouble.status == 404:
            return HubError(
                f"{self.repo_id} or the revision does not exist, or this token may not see it.",
                hint="Check the names, and the token's permissions.",
            )
        return None

    def _prepare(self, revision: str, *, private: bool, create_branch: bool) -> None:
        from huggingface_hub.errors import RepositoryNotFoundError

        def seen() -> bool | None:
            try:
                return bool(self.api.repo_info(self.repo_id, repo_type="dataset").private)
            except RepositoryNotFoundError as error:
                if error.response.status_code == 401:
                    raise
                return None

        is_private = self._patiently(seen, f"looking for {self.repo_id}")
        if is_private is None:
            self._patiently(
                lambda: self.api.create_repo(self.repo_id, repo_type="dataset", private=private, exist_ok=True),
                f"creating {self.repo_id}",
            )
        elif private and not is_private:
            raise HubError(
                f"{self.repo_id} exists and is public.", hint="Make it private in its settings, or choose another name."
            )
        if create_branch and revision != MAIN and not revision.startswith("refs/"):
            self._patiently(
                lambda: self.api.create_branch(self.repo_id, repo_type="dataset", branch=revision, exist_ok=True),
                f"creating the branch {revision!r} of {self.repo_id}",
            )

    def _step(self, target: _Target) -> tuple[_Target, _Plan, bool]:
        """One commit: where it went, what it did, and whether it did.

        Planned anew at every attempt: someone else may have committed, or ours arrived and only the answer was lost.
        """
        plan = self._compare(target.revision)
        if target.to_open and not plan.empty:
            found = self._find_pull_request()
            if found:
                target, plan = found
        if plan.empty:
            return target, plan, False
        if len(plan.add) > FILES_PER_COMMIT:
            # Card and manifest come last, so that no half pushed data set looks complete.
            plan = _Plan(plan.add[:FILES_PER_COMMIT], (), plan.head, plan.files)
        self._decode(plan)
        info = self.api.create_commit(
            self.repo_id,
            [*_additions(plan.add), *_deletions(plan.delete)],
            commit_message=self.title,
            repo_type="dataset",
            revision=target.revision,
            create_pr=target.to_open,
            parent_commit=plan.head,
        )
        if info.pr_url and info.pr_revision:
            target = _Target(info.pr_revision, pull_request=info.pr_url)
        return target, plan, True

    def _decode(self, plan: _Plan) -> None:
        """Read what is sent to its end: a hash may be that of a damaged file. Raises `IntegrityError`."""
        going = {file.path for file in plan.add} - self.decoded
        shards = [shard for shard in self.manifest.shards if shard.path in going]
        findings = check_content(self.folder, shards, self.progress)
        if findings:
            more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
            raise IntegrityError(
                f"{self.folder} is damaged: {findings[0].message}{more}.",
                hint="Remove that file and run the same `squtr build` again.",
            )
        self.decoded.update(shard.path for shard in shards)

    def _compare(self, revision: str) -> _Plan:
        from huggingface_hub.hf_api import RepoFile

        head = self.api.repo_info(self.repo_id, repo_type="dataset", revision=revision).sha or ""
        tree = self.api.list_repo_tree(self.repo_id, repo_type="dataset", revision=head or revision, recursive=True)
        remote = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
        there = None
        if MANIFEST_NAME in remote and not self.replace:
            there = published_manifest(
                self.api, self.repo_id, head or revision, type(self.manifest), self.manifest.kind
            )
        manifest = union(self.repo_id, there, self.manifest) if there else self.manifest
        files = self._files(manifest)
        listed = {shard.path for shard in manifest.shards}
        stale = tuple(p for p in remote if is_shard_path(p, manifest.data_folders) and p not in listed)
        foreign = sorted(set(stale) - {shard.path for shard in there.shards}) if there else stale
        if foreign and not self.replace:
            raise HubError(
                f"{self.repo_id} holds files that squtr did not write ({foreign[0]}).",
                hint="Choose another repository, or remove them (--replace does): they would be loaded as part of the"
                " data set.",
            )
        kept = {shard.path: shard for shard in manifest.shards if shard.path not in files}
        for path, shard in kept.items():
            there_now = remote.get(path)
            sha256 = there_now.lfs.sha256 if there_now and there_now.lfs else shard.sha256
            if there_now is None or (there_now.size, sha256) != (shard.bytes, shard.sha256):
                raise HubError(
                    f"{path} of {self.repo_id} is not what its manifest lists.",
                    hint="Push the folder that holds it, or use --replace.",
                )
        add = tuple(file for path, file in files.items() if not file.is_at(remote.get(path)))
        return _Plan(add, stale, head, len(files) + len(kept))

    def _files(self, manifest: Manifest) -> dict[str, _File]:
        """All files to publish, shards first and the manifest last; `manifest` may list others that are there."""
        own: dict[str, Shard] = {shard.path: shard for shard in self.manifest.shards}
        files = [_File(path, self.folder / path, shard.bytes, shard.sha256) for path, shard in own.items()]
        if manifest is self.manifest:
            sides = {name: (self.folder / name).read_bytes() for name in (*manifest.side_files, MANIFEST_NAME)}
        else:
            sides = side_contents(manifest)
        files += [_side_file(name, content, self.repo_id) for name, content in sides.items()]
        return {file.path: file for file in files}

    def _find_pull_request(self) -> tuple[_Target, _Plan] | None:
        """An open pull request with this content, which an earlier push or a lost answer left."""
        requests = self.api.get_repo_discussions(
            self.repo_id, repo_type="dataset", discussion_type="pull_request", discussion_status="open"
        )
        for request in requests:
            if request.title == self.title and request.git_reference:
                plan = self._compare(request.git_reference)
                if plan.empty:
                    return _Target(request.git_reference, pull_request=request.url), plan
        return None

    def _tag(self, tag: str, commit: str) -> None:
        """Name `commit`; a tag that names it already is fine, one that names another is left alone."""

        def attempt() -> str:
            refs = self.api.list_repo_refs(self.repo_id, repo_type="dataset")
            there = next((ref.target_commit for ref in refs.tags if ref.name == tag), "")
            if not there:
                self.api.create_tag(self.repo_id, repo_type="dataset", tag=tag, revision=commit)
            return there or commit

        there = self._patiently(attempt, f"tagging {self.repo_id}")
        if there != commit:
            raise HubError(
                f"the tag {tag!r} of {self.repo_id} names another commit ({there[:8]}); the data set was pushed.",
                hint="Choose another tag.",
            )


def _additions(files: Iterable[_File]) -> Iterable[CommitOperationAdd]:
    from huggingface_hub import CommitOperationAdd

    for file in files:
        operation = CommitOperationAdd(file.path, file.content)
        # Known already: spares the client a second reading of every shard.
        operation.upload_info.sha256 = bytes.fromhex(file.sha256)
        yield operation


def _deletions(paths: Iterable[str]) -> Iterable[CommitOperationDelete]:
    from huggingface_hub import CommitOperationDelete

    for path in paths:
        yield CommitOperationDelete(path, is_folder=False)
