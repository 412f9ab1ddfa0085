"""Runs `check(ctx)` of a task's author on the files that an agent left.

Reads one JSON object on standard input: `code`, `allowed_imports`, `root` (a folder with
`filesystem` and `.apps_data`), `final_answer`, `messages`, `status`. Prints one JSON object as its
last line: `gate_violations`, or `passed`, `details` and perhaps `metrics`.
"""

import ast
import fnmatch
import json
import os
import sqlite3
import sys
import traceback

ALLOWED = {
    "csv", "json", "re", "math", "statistics", "datetime", "io", "decimal", "fractions",
    "collections", "itertools", "functools", "hashlib", "base64", "html", "urllib.parse", "string",
    "textwrap", "difflib", "sqlite3", "zipfile", "pandas", "openpyxl",
}
BANNED = {
    "os", "sys", "subprocess", "socket", "shutil", "pathlib", "ctypes", "pickle", "marshal",
    "importlib", "imp", "builtins", "threading", "multiprocessing", "asyncio", "signal", "resource",
    "fcntl", "platform", "tempfile",
}
BANNED_NAMES = {
    "exec", "eval", "compile", "open", "input", "breakpoint", "globals", "locals", "vars", "help",
    "memoryview", "getattr", "setattr", "delattr", "exit", "quit",
}


def violations(tree, allowed):
    """What in the code is not allowed, each as a sentence."""
    found = []

    def module(name, line):
        parts = name.split(".")
        prefixes = {".".join(parts[: n + 1]) for n in range(len(parts))}
        if parts[0] in BANNED or not prefixes & allowed:
            found.append(f"line {line}: import of `{name}`")

    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            for alias in node.names:
                module(alias.name, line)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                found.append(f"line {line}: relative import")
            else:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    module(whole if whole in allowed else node.module or "", line)
        elif isinstance(node, ast.Name):
            if node.id in BANNED_NAMES or (node.id.startswith("__") and node.id.endswith("__")):
                found.append(f"line {line}: use of `{node.id}`")
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("__"):
                found.append(f"line {line}: access to `{node.attr}`")
    return found


class Context:
    """What `check` gets to see."""

    def __init__(self, job):
        self._root = os.path.realpath(job["root"])
        self.final_answer = job["final_answer"]
        self.trajectory = job["messages"]
        self.trajectory_status = job["status"]

    def _path(self, path):
        path = str(path).lstrip("/")
        for candidate in (path, os.path.join("filesystem", path)):
            full = os.path.realpath(os.path.join(self._root, candidate))
            parts = os.path.relpath(full, self._root).split(os.sep)
            if parts[0] in ("filesystem", ".apps_data") and os.path.exists(full):
                return full
        raise FileNotFoundError(f"no file `{path}` in the world")

    def exists(self, path):
        try:
            self._path(path)
        except FileNotFoundError:
            return False
        return True

    def read_bytes(self, path):
        with open(self._path(path), "rb") as file:
            return file.read()

    def read_text(self, path, encoding="utf-8"):
        return self.read_bytes(path).decode(encoding)

    def read_json(self, path):
        return json.loads(self.read_text(path))

    def list_files(self, pattern="*"):
        found = []
        for top in ("filesystem", ".apps_data"):
            for folder, _, names in os.walk(os.path.join(self._root, top)):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), self._root)
                    short = path[len("filesystem/"):] if top == "filesystem" else path
                    if any(fnmatch.fnmatchcase(p, pattern) for p in (path, short, name)):
                        found.append(short)
        return sorted(found)

    def sqlite_connect(self, path):
        return sqlite3.connect(f"file:{self._path(path)}?mode=ro", uri=True)


def finish(verdict):
    sys.stdout.flush()
    print("\n" + json.dumps(verdict), flush=True)
    os._exit(0)


def run(job):
    try:
        tree = ast.parse(job["code"])
    except SyntaxError as error:
        return {"gate_violations": [f"the code cannot be parsed: {error}"]}
    allowed = (ALLOWED | set(job["allowed_imports"])) - BANNED
    found = violations(tree, allowed)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if "check" not in defined:
        found.append("the code defines no function `check`")
    if found:
        return {"gate_violations": found}
    names = {"__name__": "author_check"}
    try:
        exec(compile(tree, "check", "exec"), names)
        result = names["check"](Context(job))
    except BaseException as error:
        details = "".join(traceback.format_exception_only(type(error), error)).strip()
        return {"passed": False, "details": f"check failed: {details}"}
    if not isinstance(result, dict) or not isinstance(result.get("passed"), bool):
        return {"no_verdict": f"check returned {result!r:.200}, not a dict with `passed`"}
    verdict = {"passed": result["passed"], "details": str(result.get("details", ""))}
    if isinstance(result.get("metrics"), dict):
        verdict["metrics"] = result["metrics"]
    try:
        json.dumps(verdict)
    except (TypeError, ValueError):
        verdict["metrics"] = {key: str(value) for key, value in verdict["metrics"].items()}
    return verdict


finish(run(json.load(sys.stdin)))
