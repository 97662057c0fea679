"""The policy of the session as a file that the command line reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise.doors.web.workspace import Workspace

JOURNAL = "balance.journal"


def policy_text(policy: Mapping[str, Any]) -> str:
    """The policy as TOML, without empty values."""
    import tomli_w

    return tomli_w.dumps({name: value for name, value in policy.items() if value not in (None, {}, [], "")})


def journal_place(workspace: Workspace) -> Path:
    """The path of the private journal of trials."""
    return workspace.private / JOURNAL
