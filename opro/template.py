"""The form that an adapter must have: `template: prompt-only@1.0`."""

from __future__ import annotations

from opro.errors import ConfigError, nearest

PROMPT_ONLY = "prompt-only@1.0"
MAX_BYTES = 40_000
FILE_NAME = "ADAPTER.md"


def check_name(template: object) -> None:
    """Raise ConfigError unless `template` is one that we know."""
    if template != PROMPT_ONLY:
        hint = nearest(str(template), [PROMPT_ONLY])
        raise ConfigError(f"template={template}: must be {PROMPT_ONLY}{hint}")


def fault(adapter: str) -> str | None:
    """Return why a text can't be an adapter (one UTF-8 document of 1 to 40,000 bytes), or None."""
    try:
        size = len(adapter.encode("utf-8"))
    except UnicodeEncodeError:
        return "template: not valid UTF-8 (a lone surrogate)"
    if not adapter.strip():
        return "template: empty"
    if size > MAX_BYTES:
        return f"template: {size} bytes, at most {MAX_BYTES}"
    return None
