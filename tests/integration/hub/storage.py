"""What a Hub knows: users, repositories, commits, branches, tags, pull requests, and large files by their sha256."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

import yaml

LARGE_BYTES = 10 * 2**20
GITATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"


class Refused(Exception):
    """An answer that is not 200, with the Hub's headers for it."""

    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


@dataclass(frozen=True)
class User:
    """Whose token it is, where it may write."""

    name: str
    organizations: tuple[str, ...] = ()
    writes: bool = True

    def may_write(self, repo_id: str) -> bool:
        return self.writes and repo_id.split("/", maxsplit=1)[0] in {self.name, *self.organizations}


@dataclass(frozen=True)
class Entry:
    """A file in a commit: git's id (of the pointer if it is large), its size, its sha256 if it is large."""

    oid: str
    size: int
    sha256: str = ""


@dataclass(frozen=True)
class Commit:
    """A tree with its parent."""

    oid: str
    parent: str
    message: str
    files: dict[str, Entry]


@dataclass
class Repo:
    """A data set."""

    id: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    requests: dict[int, dict[str, Any]] = field(default_factory=dict)

    def resolve(self, revision: str) -> Commit:
        """The commit that a branch, tag, pull request or (shortened) id names."""
        for name in (revision, f"refs/heads/{revision}", f"refs/tags/{revision}"):
            if name in self.refs:
                return self.commits[self.refs[name]]
        found = [c for oid, c in self.commits.items() if len(revision) >= 5 and oid.startswith(revision)]
        if len(found) != 1:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return found[0]

    def log(self, revision: str = "main") -> list[str]:
        """Messages from the newest commit to the first."""
        commit: Commit | None = self.resolve(revision)
        messages = []
        while commit is not None:
            messages.append(commit.message)
            commit = self.commits.get(commit.parent)
        return messages


def git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


class Storage:
    """The state of the Hub. One request at a time changes it."""

    def __init__(self, users: dict[str, User] | None = None) -> None:
        self.users = users or {}
        self.repos: dict[str, Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.large: dict[str, bytes] = {}

    def create(self, repo_id: str, *, private: bool = False) -> Repo:
        """A new repository with its first commit."""
        if repo_id in self.repos:
            raise Refused(409, "You already created this dataset repo")
        repo = self.repos[repo_id] = Repo(repo_id, private)
        self.add_commit(repo, "refs/heads/main", "", "initial commit", {".gitattributes": self.keep(GITATTRIBUTES)})
        return repo

    def keep(self, content: bytes, *, large: bool = False) -> Entry:
        """Store a file."""
        if large:
            sha256 = hashlib.sha256(content).hexdigest()
            self.large[sha256] = content
            return Entry(git_oid(pointer(sha256, len(content))), len(content), sha256)
        oid = git_oid(content)
        self.blobs[oid] = content
        return Entry(oid, len(content))

    def content(self, entry: Entry) -> bytes:
        return self.large[entry.sha256] if entry.sha256 else self.blobs[entry.oid]

    def read(self, repo_id: str, path: str, revision: str = "main") -> bytes:
        """A file's content, for assertions."""
        return self.content(self.repos[repo_id].resolve(revision).files[path])

    def add_commit(self, repo: Repo, ref: str, parent: str, message: str, files: dict[str, Entry]) -> Commit:
        tree = sorted((path, entry.oid) for path, entry in files.items())
        oid = hashlib.sha1(json.dumps([repo.id, parent, message, tree]).encode()).hexdigest()
        repo.commits[oid] = commit = Commit(oid, parent, message, files)
        repo.refs[ref] = oid
        return commit

    def write(self, repo_id: str, path: str, content: bytes, revision: str = "main") -> Commit:
        """Someone else commits a file."""
        repo = self.repos[repo_id]
        head = repo.resolve(revision)
        ref = revision if revision in repo.refs else f"refs/heads/{revision}"
        files = head.files | {path: self.keep(content, large=path.endswith(".parquet"))}
        return self.add_commit(repo, ref, head.oid, f"Change {path}", files)

    def commit(
        self, repo: Repo, revision: str, lines: list[dict[str, Any]], *, author: User, create_pr: bool
    ) -> tuple[Commit, int]:
        """Apply the lines of a commit request; the number is that of a new pull request, 0 without."""
        head = repo.resolve(revision)
        header = lines[0]["value"]
        parent = header.get("parentCommit")
        if parent and not create_pr and not head.oid.startswith(parent):
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        files = dict((repo.resolve(parent) if parent else head).files)
        for line in lines[1:]:
            value = line["value"]
            path = value["path"]
            if line["key"] == "file":
                content = base64.b64decode(value["content"])
                if path == "eval.yaml":
                    check_evaluation(content)
                files[path] = self.keep(content)
            elif line["key"] == "lfsFile":
                if len(self.large.get(value["oid"], b"")) != value["size"]:
                    raise Refused(400, f"the large file of {path} was not uploaded")
                files[path] = self.keep(self.large[value["oid"]], large=True)
            elif line["key"] == "deletedFile":
                if files.pop(path, None) is None:
                    raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")
            else:
                raise Refused(400, f"unknown operation {line['key']}")
        if files == head.files:
            raise Refused(400, "an empty commit")
        if not create_pr:
            ref = revision if revision in repo.refs else f"refs/heads/{revision}"
            return self.add_commit(repo, ref, head.oid, header["summary"], files), 0
        number = len(repo.requests) + 1
        repo.requests[number] = {
            "title": header["summary"],
            "description": header.get("description", ""),
            "author": author.name,
            "status": "open",
        }
        return self.add_commit(repo, f"refs/pr/{number}", head.oid, header["summary"], files), number

    def merge(self, repo_id: str, number: int) -> None:
        """Merge a pull request."""
        repo = self.repos[repo_id]
        request = repo.resolve(f"refs/pr/{number}")
        head = repo.resolve("main")
        self.add_commit(repo, "refs/heads/main", head.oid, f"Merge #{number}", head.files | request.files)
        repo.requests[number]["status"] = "merged"


def check_evaluation(content: bytes) -> None:
    """The Hub refuses an `eval.yaml` that is not in its form."""
    try:
        data = yaml.safe_load(content)
        tasks = data["tasks"]
        valid = all(isinstance(data[key], str) for key in ("name", "description", "evaluation_framework"))
        valid = valid and tasks and all(isinstance(task["id"], str) for task in tasks)
    except (yaml.YAMLError, KeyError, TypeError) as error:
        raise Refused(400, f"eval.yaml: {error}") from error
    if not valid:
        raise Refused(400, "eval.yaml is not in the form of a benchmark")


def check_card(content: str) -> None:
    """The Hub refuses metadata that is not YAML, or a license that it does not know."""
    try:
        data = yaml.safe_load(content.split("---")[1])
    except (yaml.YAMLError, IndexError) as error:
        raise Refused(400, f"README.md: {error}") from error
    if data.get("license") not in {"cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "apache-2.0", "mit", "other"}:
        raise Refused(400, f'"license" must be one of the known ones, not {data.get("license")!r}')
