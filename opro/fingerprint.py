"""What identifies a run's settings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def sha256_of(value: Any) -> str:
    """Return the sha256 (hex) of a JSON value in canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return `key: old -> new` for every setting in which two flat fingerprints differ."""
    keys = sorted({*old, *new})
    missing = "(not set)"
    return [
        f"{key}: {_short(old.get(key, missing))} -> {_short(new.get(key, missing))}"
        for key in keys
        if old.get(key, missing) != new.get(key, missing)
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
