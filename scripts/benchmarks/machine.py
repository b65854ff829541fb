"""The machine that figures come from."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> str:
    """Return one line: processor, cores, load, Python."""
    load = os.getloadavg()[0]
    return (
        f"machine: {_processor()}, {os.cpu_count()} cores, load {load:.1f} at the start,"
        f" Python {platform.python_version()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
