"""The databases that MLflow opens; it has no way of its own to close them."""

from __future__ import annotations

from weakref import WeakSet

from sqlalchemy import Connection, Engine, event

_engines: WeakSet[Engine] = WeakSet()


def watch() -> None:
    """Note each engine that is used from now on."""
    if not event.contains(Engine, "engine_connect", _note):
        event.listen(Engine, "engine_connect", _note)


def close() -> None:
    """Close the connections of all that were noted; they come again when needed.

    The last one to close an SQLite file writes into it what its neighbour `-wal` holds.
    """
    for engine in list(_engines):
        engine.dispose()


def _note(connection: Connection) -> None:
    _engines.add(connection.engine)
