"""What MLflow allows as names and values, and how ours are made to fit without silent loss."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from typing import Any

PARAM_LIMIT = 500
"""Characters of a param; MLflow allows 6,000, its UI and older servers far fewer."""

TAG_LIMIT = 7_500
"""Characters of a tag; MLflow allows 8,000 and cuts what is longer."""

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. /-]{0,150}")
_HASHED = re.compile(r"-[0-9a-f]{10}$")


def key(name: str) -> str:
    """Return `name` as a metric or param name; different names give different results.

    A name that MLflow refuses (or that would read like another) keeps its allowed characters and
    gets ten hex digits of its sha256.
    """
    safe = _SAFE.fullmatch(name) and name == name.strip() and posixpath.normpath(name) == name
    if safe and not _HASHED.search(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:100].strip("._-") or "odd"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kept}-{digest[:10]}"


def prompt_name(dataset: str) -> str:
    """Return the Prompt Registry name under which winners on `dataset` are versions."""
    return f"opro-{re.sub(r'[^A-Za-z0-9_.-]+', '_', dataset)[:100]}"


def clean(text: str) -> str:
    r"""Return `text` with NUL and lone surrogates, which databases refuse, as `\x00`, `\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def clip(text: str, limit: int = TAG_LIMIT) -> str:
    """Return `text` cut to `limit` characters, saying so."""
    text = clean(text)
    if len(text) <= limit:
        return text
    note = f"… [cut: {len(text):,} characters]"
    return text[: limit - len(note)] + note


def value_text(value: Any) -> str:
    """Return a setting as text: strings as they are, all else as JSON (`null`, `true`, lists)."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def param(name: str, value: Any) -> tuple[str, str | None]:
    """Return a param's text and, when it is too long for a param, the whole for an artifact."""
    text = value_text(value)
    if len(text) <= PARAM_LIMIT:
        return clean(text), None
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    note = f"… [{len(text):,} characters, whole in {param_file(name)}, sha256 {digest}]"
    return clean(text[:200]) + note, text


def param_file(name: str) -> str:
    """Return the artifact that holds a long param."""
    return f"params/{key(name).replace('/', '_')}.txt"


def note_text(report: str, limit: int = TAG_LIMIT) -> str:
    """Return as many whole sections of a Markdown report as fit into a run's note."""
    report = clean(report)
    if len(report) <= limit:
        return report
    tail = "\n\nThe whole report is the artifact `report.md`.\n"
    kept = ""
    for section in re.split(r"(?m)^(?=## )", report):
        if len(kept) + len(section) + len(tail) > limit:
            break
        kept += section
    return (kept.rstrip() + tail).lstrip()
