"""The Hub's HTTP interface as an ASGI application, as far as clients use it: data sets, small files of models."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from .faults import Fault
from .storage import LARGE_BYTES, Entry, Refused, Repo, Storage, User, check_card

PAGE = 10
"""Entries of a listing per answer: few, so that clients have to turn pages."""

Scope = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A request, read whole."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    user: User | None
    storage_port: bool

    def flag(self, name: str) -> bool:
        return self.query.get(name, ["0"])[0].lower() in {"1", "true"}


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(value: Any, **headers: str) -> Answer:
    return Answer(200, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})


class HubApp:
    """The application. `log` has "METHOD path status" of each request; `faults` happen in order."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.faults: list[Fault] = []
        self.log: list[str] = []
        self.address = self.storage_address = ""
        self.storage_port = 0

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        method, path = scope["method"], scope["raw_path"].decode()
        fault = next((fault for fault in self.faults if fault.meets(method, path)), None)
        if fault and fault.drop == "request":
            await receive()
            self.cut(receive, method, path)
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if fault and fault.before:
            fault.before()
        if fault and fault.status:
            text = json.dumps({"error": fault.message}).encode()
            answer = Answer(fault.status, text, {"Content-Type": "application/json", **fault.headers})
        else:
            answer = self.answer(scope, method, path, body)
        if fault and fault.drop == "response":
            self.cut(receive, method, path)
            return
        self.log.append(f"{method} {path} {answer.status}")
        headers = {"Content-Length": str(len(answer.body)), **answer.headers}
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            }
        )
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else answer.body})

    def cut(self, receive: Any, method: str, path: str) -> None:
        """Cut the connection. ASGI has no word for it, so this reaches for the server's transport."""
        self.log.append(f"{method} {path} cut")
        receive.__self__.transport.abort()

    def answer(self, scope: Scope, method: str, path: str, body: bytes) -> Answer:
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        try:
            request = Request(
                method=method,
                path=path,
                query=parse_qs(scope["query_string"].decode()),
                headers=headers,
                body=body,
                user=self.user(headers),
                storage_port=scope["server"][1] == self.storage_port,
            )
            for verb, pattern, handler in ROUTES:
                match = re.fullmatch(pattern, path)
                if match and verb == ("GET" if method == "HEAD" else method):
                    return handler(self, request, **{k: unquote(v or "") for k, v in match.groupdict().items()})
            raise Refused(404, f"no such address: {method} {path}")
        except Refused as refused:
            told = {"Content-Type": "application/json", "X-Error-Message": refused.message.replace("\n", " ")}
            if refused.code:
                told["X-Error-Code"] = refused.code
            errors = [{"message": refused.message}]
            return Answer(refused.status, json.dumps({"error": refused.message, "errors": errors}).encode(), told)

    def user(self, headers: Mapping[str, str]) -> User | None:
        given = headers.get("authorization", "")
        if not given:
            return None
        user = self.storage.users.get(given.removeprefix("Bearer "))
        if user is None:
            raise Refused(401, "Invalid credentials in Authorization header")
        return user

    def repo(self, request: Request, repo_id: str, *, write: bool = False) -> Repo:
        """The repository, if the user may see it, or write to it."""
        user, repo = request.user, self.storage.repos.get(repo_id)
        hidden = repo is None or (
            repo.private and not (user and repo_id.split("/", maxsplit=1)[0] in {user.name, *user.organizations})
        )
        if hidden:
            raise Refused(404 if user else 401, "Repository not found", "RepoNotFound")
        if write and not user:
            raise Refused(401, "Invalid username or password.")
        if write and not (user and user.may_write(repo_id)):
            raise Refused(403, f"You don't have the rights to write to {repo_id}")
        assert repo is not None
        return repo

    def whoami(self, request: Request) -> Answer:
        if not request.user:
            raise Refused(401, "Invalid username or password.")
        return as_json({"name": request.user.name, "orgs": [{"name": o} for o in request.user.organizations]})

    def create_repo(self, request: Request) -> Answer:
        asked = json.loads(request.body)
        if not request.user:
            raise Refused(401, "Invalid username or password.")
        repo_id = f"{asked.get('organization') or request.user.name}/{asked['name']}"
        space = asked.get("type") == "space"
        url = f"{self.address}/{'spaces' if space else 'datasets'}/{repo_id}"
        if space and asked.get("sdk") not in ("static", "docker", "gradio"):
            raise Refused(400, "a Space needs an SDK")
        if not request.user.may_write(repo_id):
            raise Refused(403, f"You don't have the rights to create the dataset {repo_id}")
        if repo_id in self.storage.repos:
            body = json.dumps({"error": "You already created this dataset repo", "url": url}).encode()
            return Answer(409, body, {"Content-Type": "application/json"})
        self.storage.create(repo_id, private=asked.get("visibility") == "private")
        return as_json({"url": url, "name": repo_id})

    def info(self, request: Request, repo: str, revision: str = "main") -> Answer:
        there = self.repo(request, repo)
        commit = there.resolve(revision)
        files = [{"rfilename": path} for path in sorted(commit.files)]
        return as_json(
            {"_id": "1", "id": repo, "sha": commit.oid, "private": there.private, "siblings": files, "tags": []}
        )

    def refs(self, request: Request, repo: str) -> Answer:
        there = self.repo(request, repo)

        def named(prefix: str) -> list[dict[str, str]]:
            return [
                {"name": ref.removeprefix(prefix), "ref": ref, "targetCommit": oid}
                for ref, oid in there.refs.items()
                if ref.startswith(prefix)
            ]

        return as_json(
            {
                "branches": named("refs/heads/"),
                "tags": named("refs/tags/"),
                "converts": [],
                "pullRequests": named("refs/pr/"),
            }
        )

    def tree(self, request: Request, repo: str, revision: str, path: str = "") -> Answer:
        files = self.repo(request, repo).resolve(revision).files
        prefix = f"{path}/" if path else ""
        listed: dict[str, dict[str, Any]] = {}
        for name in sorted(files):
            if not name.startswith(prefix):
                continue
            parts = name.removeprefix(prefix).split("/")
            for depth in range(1, len(parts)):
                folder = prefix + "/".join(parts[:depth])
                listed.setdefault(
                    folder,
                    {"type": "directory", "oid": hashlib.sha1(folder.encode()).hexdigest(), "size": 0, "path": folder},
                )
            listed[name] = entry_json(name, files[name])
        if path and not listed:
            raise Refused(404, f"{path} does not exist on {revision}", "EntryNotFound")
        found = [
            entry for name, entry in listed.items() if request.flag("recursive") or "/" not in name.removeprefix(prefix)
        ]
        start = int(request.query.get("cursor", ["0"])[0])
        headers = {}
        if start + PAGE < len(found):
            flag = "True" if request.flag("recursive") else "False"
            url = f"{self.address}{request.path}?recursive={flag}&cursor={start + PAGE}"
            headers["Link"] = f'<{url}>; rel="next"'
        return as_json(found[start : start + PAGE], **headers)

    def paths_info(self, request: Request, repo: str, revision: str) -> Answer:
        files = self.repo(request, repo).resolve(revision).files
        asked = parse_qs(request.body.decode()).get("paths", [])
        found = [entry_json(path, files[path]) for path in asked if path in files]
        for path in asked:
            if path not in files and any(name.startswith(f"{path}/") for name in files):
                found.append(
                    {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0, "path": path}
                )
        return as_json(found)

    def preupload(self, request: Request, repo: str, revision: str) -> Answer:
        there = self.repo(request, repo, write=not request.flag("create_pr"))
        files = there.resolve(revision).files
        told = []
        for file in json.loads(request.body)["files"]:
            path, old = file["path"], files.get(file["path"])
            large = path.endswith(".parquet") or file["size"] > LARGE_BYTES
            oid = (old.sha256 or old.oid) if old else None
            told.append({"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid})
        return as_json({"files": told})

    def lfs_batch(self, request: Request, repo: str) -> Answer:
        asked = json.loads(request.body)
        self.repo(request, repo, write="ref" in asked)
        told = []
        for wanted in asked["objects"]:
            object_ = {"oid": wanted["oid"], "size": wanted["size"]}
            if wanted["oid"] not in self.storage.large:
                object_["actions"] = {
                    "upload": {"href": f"{self.storage_address}/large/{wanted['oid']}?signature=1"},
                    "verify": {"href": f"{self.address}/datasets/{repo}.git/info/lfs/verify"},
                }
            told.append(object_)
        return as_json({"transfer": "basic", "objects": told})

    def lfs_verify(self, request: Request, repo: str) -> Answer:
        self.repo(request, repo)
        asked = json.loads(request.body)
        if len(self.storage.large.get(asked["oid"], b"")) != asked["size"]:
            raise Refused(404, "the large file did not arrive")
        return as_json({})

    def put_large(self, request: Request, sha256: str) -> Answer:
        self.at_the_storage(request)
        if hashlib.sha256(request.body).hexdigest() != sha256:
            raise Refused(400, "the content has another sha256")
        self.storage.large[sha256] = request.body
        return Answer()

    def get_large(self, request: Request, sha256: str) -> Answer:
        self.at_the_storage(request)
        if sha256 not in self.storage.large:
            raise Refused(404, "no such file")
        return ranged(request, self.storage.large[sha256], {"ETag": f'"{sha256}"'})

    def at_the_storage(self, request: Request) -> None:
        """As with the real storage, addresses are signed, and a token sent along is an error (and a leak)."""
        if not request.storage_port or "signature" not in request.query or "authorization" in request.headers:
            raise Refused(400, "Only one auth mechanism allowed")

    def commit(self, request: Request, repo: str, revision: str) -> Answer:
        create_pr = request.flag("create_pr")
        there = self.repo(request, repo, write=not create_pr)
        if not request.user:
            raise Refused(401, "Invalid username or password.")
        lines = [json.loads(line) for line in request.body.splitlines()]
        done, number = self.storage.commit(there, revision, lines, author=request.user, create_pr=create_pr)
        kind = request.path.split("/")[2]
        url = f"{self.address}/{'' if kind == 'models' else f'{kind}/'}{repo}"
        told = {"success": True, "commitOid": done.oid, "commitUrl": f"{url}/commit/{done.oid}", "hookOutput": ""}
        if number:
            told["pullRequestUrl"] = f"{url}/discussions/{number}"
        return as_json(told)

    def discussions(self, request: Request, repo: str) -> Answer:
        there = self.repo(request, repo)
        found = [
            {
                "title": about["title"],
                "num": number,
                "author": {"name": about["author"]},
                "createdAt": "2026-01-01T00:00:00.000Z",
                "status": about["status"],
                "repo": {"name": repo, "type": "dataset"},
                "isPullRequest": True,
            }
            for number, about in there.requests.items()
            if about["status"] == request.query.get("status", [about["status"]])[0]
        ]
        return as_json({"count": len(found), "start": 0, "discussions": found})

    def commits(self, request: Request, repo: str, revision: str) -> Answer:
        there = self.repo(request, repo)
        found, oid = [], there.resolve(revision).oid
        while oid:
            commit = there.commits[oid]
            found.append(
                {"id": oid, "authors": [], "date": "2026-01-01T00:00:00.000Z", "title": commit.message, "message": ""}
            )
            oid = commit.parent
        return as_json(found)

    def comment(self, request: Request, repo: str, number: str) -> Answer:
        there = self.repo(request, repo)
        if not request.user:
            raise Refused(401, "Invalid username or password.")
        text = json.loads(request.body)["comment"]
        there.requests[int(number)].setdefault("comments", []).append((request.user.name, text))
        message = {
            "id": "1",
            "type": "comment",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "author": {"name": request.user.name},
            "data": {"edited": False, "hidden": False, "latest": {"raw": text}},
        }
        return as_json({"newMessage": message})

    def merge(self, request: Request, repo: str, number: str) -> Answer:
        self.repo(request, repo, write=True)
        self.storage.merge(repo, int(number))
        return as_json({"newStatus": "merged"})

    def tag(self, request: Request, repo: str, revision: str) -> Answer:
        there = self.repo(request, repo, write=True)
        name = f"refs/tags/{json.loads(request.body)['tag']}"
        if name in there.refs:
            raise Refused(409, "Tag reference exists already")
        there.refs[name] = there.resolve(revision).oid
        return as_json({})

    def branch(self, request: Request, repo: str, branch: str) -> Answer:
        there = self.repo(request, repo, write=True)
        if f"refs/heads/{branch}" in there.refs:
            raise Refused(409, "Reference already exists")
        there.refs[f"refs/heads/{branch}"] = there.resolve("main").oid
        return as_json({})

    def validate_yaml(self, request: Request) -> Answer:
        check_card(json.loads(request.body)["content"])
        return as_json({"errors": [], "warnings": []})

    def resolve(self, request: Request, repo: str, revision: str, path: str) -> Answer:
        commit = self.repo(request, repo).resolve(revision)
        if path not in commit.files:
            raise Refused(404, "Entry not found", "EntryNotFound")
        entry = commit.files[path]
        headers = {"X-Repo-Commit": commit.oid}
        if entry.sha256:
            headers |= {
                "Location": f"{self.storage_address}/large/{entry.sha256}?signature=1",
                "X-Linked-Size": str(entry.size),
                "X-Linked-ETag": f'"{entry.sha256}"',
            }
            return Answer(302, b"", headers)
        return ranged(request, self.storage.content(entry), headers | {"ETag": f'"{entry.oid}"'})


def entry_json(path: str, entry: Entry) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "file", "oid": entry.oid, "size": entry.size, "path": path}
    if entry.sha256:
        told["lfs"] = {"oid": entry.sha256, "size": entry.size, "pointerSize": 130}
    return told


def ranged(request: Request, content: bytes, headers: Mapping[str, str]) -> Answer:
    """The content, or the part that a Range header asks for."""
    told = {"Accept-Ranges": "bytes", "Content-Type": "application/octet-stream", **headers}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    if not match:
        return Answer(200, content, told)
    first, last = int(match[1]), min(int(match[2] or len(content)), len(content) - 1)
    if first > last:
        return Answer(416, b"", {"Content-Range": f"bytes */{len(content)}"})
    return Answer(206, content[first : last + 1], told | {"Content-Range": f"bytes {first}-{last}/{len(content)}"})


REPO = r"(?P<repo>[^/]+/[^/]+)"
REVISION = r"(?P<revision>[^/]+)"
ROUTES: list[tuple[str, str, Callable[..., Answer]]] = [
    ("GET", r"/api/whoami-v2", HubApp.whoami),
    ("POST", r"/api/repos/create", HubApp.create_repo),
    ("POST", r"/api/validate-yaml", HubApp.validate_yaml),
    ("GET", rf"/api/datasets/{REPO}", HubApp.info),
    ("GET", rf"/api/datasets/{REPO}/revision/{REVISION}", HubApp.info),
    ("GET", rf"/api/datasets/{REPO}/refs", HubApp.refs),
    ("GET", rf"/api/datasets/{REPO}/tree/{REVISION}(?:/(?P<path>.+))?", HubApp.tree),
    ("POST", rf"/api/datasets/{REPO}/paths-info/{REVISION}", HubApp.paths_info),
    ("POST", rf"/api/datasets/{REPO}/preupload/{REVISION}", HubApp.preupload),
    ("POST", rf"/api/datasets/{REPO}/commit/{REVISION}", HubApp.commit),
    ("GET", rf"/api/datasets/{REPO}/commits/{REVISION}", HubApp.commits),
    ("GET", rf"/api/datasets/{REPO}/discussions", HubApp.discussions),
    ("POST", rf"/api/datasets/{REPO}/discussions/(?P<number>\d+)/comment", HubApp.comment),
    ("POST", rf"/api/datasets/{REPO}/discussions/(?P<number>\d+)/merge", HubApp.merge),
    ("POST", rf"/api/datasets/{REPO}/tag/{REVISION}", HubApp.tag),
    ("POST", rf"/api/datasets/{REPO}/branch/(?P<branch>[^/]+)", HubApp.branch),
    ("POST", rf"/datasets/{REPO}\.git/info/lfs/objects/batch", HubApp.lfs_batch),
    ("POST", rf"/datasets/{REPO}\.git/info/lfs/verify", HubApp.lfs_verify),
    ("GET", rf"/datasets/{REPO}/resolve/{REVISION}/(?P<path>.+)", HubApp.resolve),
    ("PUT", r"/large/(?P<sha256>[0-9a-f]{64})", HubApp.put_large),
    ("GET", r"/large/(?P<sha256>[0-9a-f]{64})", HubApp.get_large),
]
ROUTES += [
    (verb, pattern.replace("/api/datasets/", "/api/models/"), handler)
    for verb, pattern, handler in ROUTES
    if pattern.startswith("/api/datasets/")
]
ROUTES.append(("GET", rf"/{REPO}/resolve/{REVISION}/(?P<path>.+)", HubApp.resolve))
ROUTES += [
    (verb, pattern.replace("/datasets/", "/spaces/"), handler)
    for verb, pattern, handler in ROUTES
    if "/datasets/" in pattern
]
