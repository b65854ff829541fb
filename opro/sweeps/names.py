"""A sweep's jobs by name: their swept overrides in short, the same when the grid grows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

MAX_NAME = 80
_ODD = re.compile(r"[^\w.,=@+-]+", re.ASCII)


def job_name(overrides: Sequence[str], swept: Sequence[str]) -> str:
    """Return e.g. `n_candidates=4,select=train`; fit for a folder and for a page.

    What a name can't hold is replaced, and a hash of the whole keeps such names apart.

    Args:
        overrides: of one job, `key=value`, of all keys.
        swept: the keys that the sweep varies; others aren't named.
    """
    shorts = _short_keys(swept)
    pairs = [one.partition("=") for one in overrides]
    named = {key: value for key, _, value in pairs if key in shorts}
    if not named:
        return "job"
    whole = ",".join(f"{key}={value}" for key, value in sorted(named.items()))
    text = ",".join(f"{shorts[key]}={named[key]}" for key in shorts if key in named)
    short = _ODD.sub("-", text).strip("-.").replace("=-", "=").replace("-,", ",")
    if short == text and len(short) <= MAX_NAME:
        return short
    digest = hashlib.sha256(whole.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{short[: MAX_NAME - 9]}-{digest}"


def swept_text(job_overrides: Sequence[Sequence[str]], swept: Sequence[str]) -> str:
    """Return the keys with their values, for a person: `evolver.params.n_candidates (4, 8)`."""
    parts = []
    for key in swept:
        found = [one.partition("=")[2] for job in job_overrides for one in job if _key(one) == key]
        values = list(dict.fromkeys(found))
        shown = ", ".join(values[:6]) + (", …" if len(values) > 6 else "")
        parts.append(f"{key} ({shown})" if values else key)
    return ", ".join(parts)


def _key(override: str) -> str:
    return override.partition("=")[0]


def _short_keys(swept: Sequence[str]) -> dict[str, str]:
    """Return for each key its last parts, as many as tell it from the others."""
    keys = list(dict.fromkeys(swept))
    found = {}
    for key in keys:
        parts = key.lstrip("+~").split(".")
        for size in range(1, len(parts) + 1):
            tail = ".".join(parts[-size:])
            alike = [other for other in keys if f".{other.lstrip('+~')}".endswith(f".{tail}")]
            if alike == [key]:
                break
        found[key] = tail
    return found
