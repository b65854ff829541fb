"""Points the Prompt Registry's alias `champion` at the winner of a sweep's best job."""

from __future__ import annotations

from opro.trackers.mlflow_client import Client
from opro.trackers.mlflow_result import PROMPT

ALIAS = "champion"


def crown(client: Client, run_id: str, sweep_run_id: str) -> None:
    """Set the alias on the version that a run registered; nothing if it registered none.

    Args:
        client: of the store.
        run_id: the best job's run; its tag `opro.prompt` says `NAME version N, md5 …`.
        sweep_run_id: the sweep's own run, which gets to know of it.
    """
    registered = client.call("get_run", run_id).data.tags.get(PROMPT, "")
    name, _, rest = registered.rpartition(" version ")
    if not name:
        return
    version = int(rest.partition(",")[0])
    client.call("set_prompt_alias", name, ALIAS, version)
    client.set_tags(sweep_run_id, {"opro.champion": f"{name} version {version}"})
