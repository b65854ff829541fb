"""Makes the image of `agent=terminal` from this machine's busybox, without any registry.

Run as `python -m opro.agents.image` (or scripts/build-image). One static program and its links,
2 MB: sh, find, grep, sed, awk, sort, tar and the like.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from opro.agents.box import ContainerFailed
from opro.agents.docker_engine import PROJECT, connect
from opro.errors import ConfigError

IMAGE = "opro-busybox:1"
"""Its name at the daemon; the number grows when what is in it changes."""
FOLDERS = ("bin", "etc", "tmp", "usr", "usr/bin", "work")
FILES = {
    "etc/passwd": "root:x:0:0:root:/work:/bin/sh\nnobody:x:65534:65534:nobody:/work:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}


def main() -> int:
    """Make the image; return the exit status."""
    try:
        archive = root_file_system(_busybox())
        with connect() as engine:
            labels = [f"LABEL {key}={value}" for key, value in PROJECT.items()]
            engine.load(archive, IMAGE, ["ENV PATH=/bin:/usr/bin", *labels])
    except (ConfigError, ContainerFailed) as error:
        print(f"opro: {error}", file=sys.stderr)
        return 2
    print(f"made {IMAGE} ({len(archive) / 1e6:.1f} MB)")
    return 0


def root_file_system(busybox: Path) -> bytes:
    """Return the image's files as a tar archive, the same bytes for the same busybox."""
    done = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in FOLDERS:
            mode = 0o1777 if name in ("tmp", "work") else 0o755
            archive.addfile(_entry(name, tarfile.DIRTYPE, mode))
        _add(archive, "bin/busybox", busybox.read_bytes(), 0o755)
        for name in sorted({*done.stdout.split()} - {"busybox"}):
            archive.addfile(_entry(f"bin/{name}", tarfile.SYMTYPE, 0o777, "busybox"))
        archive.addfile(_entry("usr/bin/env", tarfile.SYMTYPE, 0o777, "../../bin/busybox"))
        for name, text in FILES.items():
            _add(archive, name, text.encode(), 0o644)
    return buffer.getvalue()


def _busybox() -> Path:
    """Return this machine's static busybox."""
    for name in ("busybox", "/bin/busybox", "/usr/lib/busybox/busybox-static"):
        found = shutil.which(name)
        if found is not None and not _needs_a_loader(Path(found)):
            return Path(found)
    raise ConfigError(
        "no static busybox on this machine; install one (Debian, Ubuntu: apt-get install"
        " busybox-static; Alpine: apk add busybox-static) and try again"
    )


def _needs_a_loader(program: Path) -> bool:
    """Tell whether a program asks for a dynamic loader, which the image doesn't have."""
    head = program.read_bytes()[:4096]
    return b"ld-linux" in head or b"ld-musl" in head


def _entry(name: str, kind: bytes, mode: int, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, mode, target
    return entry


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    sys.exit(main())
