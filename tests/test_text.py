"""The text helpers that agents, judges and the core share."""

from __future__ import annotations

import hashlib
import time

import pytest

from opro.text import clip, md5_of, strip_think


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("(B)", "(B)"),
        (" (B)\n", " (B)\n"),
        ("<think>(A)</think>\n(B)", "(B)"),
        ("<THINK>(A)</Think >(B)", "(B)"),
        ("Well. <think>(A)</think> (B)", "Well.  (B)"),
        ("<think>a</think>1<thinking>b</thinking>2", "12"),
        ("(A)</think>(B)", "(B)"),
        ("a</think>b</think>(B)", "(B)"),
        ("<think>a<think>b</think>c</think>(B)", "(B)"),
        ("<think>a</thinking>b</think>(B)", "(B)"),
        ("<think>(B)", None),
        ("(B)<think>", None),
        ("<think>a</think>(B)<think>c", None),
        ("<think>a</think> \n", ""),
        ("</think>", ""),
        ("a < b > c <thinker>", "a < b > c <thinker>"),
    ],
)
def test_strip_think(text: str, rest: str | None) -> None:
    assert strip_think(text, ["think", "thinking"]) == rest


def test_strip_think_with_own_names() -> None:
    assert strip_think("<a.b>x</a.b>y", ["a.b"]) == "y"
    assert strip_think("<aXb>x</aXb>y", ["a.b"]) == "<aXb>x</aXb>y"
    assert strip_think("<think>x</think>y", []) == "<think>x</think>y"


@pytest.mark.parametrize("part", ["<think>", "</think>", "<think ", "<", "<think></think>"])
def test_strip_think_takes_linear_time(part: str) -> None:
    start = time.perf_counter()
    strip_think(part * (1_000_000 // len(part)) + " " * 1_000_000, ["think"])
    assert time.perf_counter() - start < 3.0


def test_md5_of() -> None:
    assert md5_of("Zé") == hashlib.md5("Zé".encode()).hexdigest()
    assert md5_of("\ud800") != md5_of("\ud801")


def test_clip() -> None:
    assert clip("abc", 3) == "abc"
    assert clip("abcd", 3) == "ab…"
