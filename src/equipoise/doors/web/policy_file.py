"""The draft's policy as the file that the command line reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equipoise.doors.web.workspace import Workspace

JOURNAL = "balance.journal"


def policy_text(policy: Mapping[str, Any]) -> str:
    """TOML; what was not said is left out."""
    import tomli_w

    return tomli_w.dumps({name: value for name, value in policy.items() if value not in (None, {}, [], "")})


def journal_place(workspace: Workspace) -> Path:
    """Where what was tried is written down; private."""
    return workspace.private / JOURNAL
