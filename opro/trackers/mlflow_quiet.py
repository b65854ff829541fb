"""Keeps mlflow from phoning home, from chatting, and from taking orders from the environment."""

from __future__ import annotations

import logging
import os
import warnings

log = logging.getLogger(__name__)

IGNORED = (
    "MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_EXPERIMENT_ID",
    "MLFLOW_EXPERIMENT_NAME", "MLFLOW_ACTIVE_MODEL_ID",
)  # fmt: skip

QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
}
"""Set before mlflow is imported: it tells nobody, and prints nothing."""

PATIENCE = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "4",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
"""Unless set by the user: a server may be down for some 15 s in each call, not for minutes."""


def before_import() -> None:
    """Set the environment that mlflow reads when it is imported; say what of it is ignored."""
    os.environ.update(QUIET)
    # What these tell each other about their next releases is nothing that a run could change.
    for module in ("mlflow", "sqlalchemy", "alembic"):
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=rf"{module}\b")
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    for name in IGNORED:
        if os.environ.pop(name, None):  # else parts of mlflow's client would still follow it
            log.warning("%s is set but not used: the tracker.* settings alone decide", name)


def after_import() -> None:
    """Silence the chatter of mlflow and of what it uses; errors are raised anyway."""
    for name in ("mlflow", "alembic", "git"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It logs a traceback for each lock that is then waited out; what isn't is raised.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
