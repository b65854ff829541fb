"""From the optimizer's replies to the instructions worth scoring, each skip with its reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opro import template
from opro.errors import CallFailed
from opro.evolvers import reply
from opro.evolvers.params import OPROParams
from opro.records import Candidate
from opro.text import md5_of, strip_think
from opro.types import Completion


class Sieve:
    """Remembers every instruction generated so far, the skipped ones too."""

    def __init__(self, params: OPROParams, initial: Sequence[str]) -> None:
        self._params = params
        known = [form for text in initial for form in (text, reply.polish(text))]
        self._seen = {md5_of(text) for text in known} if params.dedupe_initial else set()

    def sift(self, replies: Sequence[Completion | CallFailed]) -> list[Candidate]:
        """Return one candidate per reply; those with status `scored` are still to be run."""
        return [self._candidate(index, answer) for index, answer in enumerate(replies)]

    def _candidate(self, index: int, answer: Completion | CallFailed) -> Candidate:
        if isinstance(answer, CallFailed):
            return Candidate(index=index, status="failed", reason=f"{answer.kind}: {answer}")
        text, reason = self._extract(answer)
        if text is None:
            return Candidate(index=index, status="skipped", reason=reason, reply=answer.text)
        md5 = md5_of(text)
        duplicate = md5 in self._seen
        self._seen.add(md5)
        reason = "generated before" if duplicate else self._fault(text)
        status = "duplicate" if duplicate else "skipped" if reason else "scored"
        return Candidate(
            index=index,
            status=status,  # type: ignore[arg-type]  # one of Status' names
            reason=reason,
            reply=answer.text,
            instruction=text,
            md5=md5,
        )

    def _extract(self, answer: Completion) -> tuple[str | None, str]:
        """Return the polished instruction, or None and the reason."""
        if answer.refusal is not None or answer.finish_reason == "content_filter":
            return None, "refusal"
        whole = reply.with_prefix(answer.text, self._params.reply_prefix or "")
        text = strip_think(whole, self._params.think_tags)
        tag = self._tag()
        cut = answer.finish_reason == "length" and not _closed(text or "", tag)
        if text is None or (cut and (self._params.reject_truncated or not text.strip())):
            return None, "truncated"
        found = self._parse(text, tag)
        if found is None:
            broken = _opened(text, tag) and not _closed(text, tag)
            return None, "truncated" if broken else "no single complete tag pair"
        return reply.polish(found), ""

    def _parse(self, text: str, tag: str | None) -> str | None:
        if self._params.reply_parsing == "strict":
            return reply.strict(text, tag)
        if tag is None:
            return reply.upstream_brackets(text)
        return reply.upstream_text(text) if tag == "TEXT" else reply.upstream_tags(text, tag)

    def _tag(self) -> str | None:
        """Return the tag that the meta-prompt asked for; None for square brackets."""
        if self._params.meta_prompt == "gpt":
            return "Start" if self._params.instruction_position == "A_begin" else "INS"
        return None if self._params.meta_prompt == "palm" else "TEXT"

    def _fault(self, text: str) -> str:
        if not text:
            return "empty"
        longest = self._params.max_instruction_chars
        if longest and len(text) > longest:
            return f"{len(text)} characters, at most {longest}"
        for pattern in self._params.reject_patterns:
            if re.search(pattern, text):
                return f"matches reject_patterns: {pattern}"
        return template.fault(text) or ""


def _opened(text: str, tag: str | None) -> bool:
    return ("[" if tag is None else f"<{tag}>") in text


def _closed(text: str, tag: str | None) -> bool:
    return ("]" if tag is None else f"</{tag}>") in text
