"""Releasing: the same `balance` as on the command line, from a policy file in the working folder."""

from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.doors.report.report_sections import balance, find_axes, limit_row
from equipoise.ground.errors import RefusedError
from equipoise.ground.progress import Progress
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.releases.release import Release
from equipoise.releases.table_release import TableRelease

REFUSED = "refused.html"


def release(progress: Progress, policy: Path, out: Path, page: Path, overwrite: bool) -> dict[str, Any]:
    """Balance and release; a refusal is an answer too, with its page."""
    page.unlink(missing_ok=True)
    try:
        made = eq.balance(policy, out=out, report=page, overwrite=overwrite, progress=progress)
    except RefusedError as error:
        return {"released": False, "words": str(error), "page": page.is_file()}
    return {"released": True, "folder": out.name, **_told(made, Job.load(policy).policy())}


def _told(made: Release | TableRelease, policy: Policy) -> dict[str, Any]:
    """What the page says of a release: the balance in a sentence, and its limits with their margins."""
    rows = [limit_row(limit, made.trial, made.trial) for limit in policy.parsed]
    words = balance(made.trial, made.original, find_axes(made.trial.scores, policy))
    return {"words": words, "limits": rows, "done": list(made.trial.recipe.words().split("; "))}


def prove(progress: Progress, folder: Path) -> dict[str, Any]:
    """Every check of a release folder."""
    progress(0, 1, "making the release again")
    found = eq.verify(folder)
    return {"outcome": found.outcome, "words": found.words, "checks": found.to_plain()["checks"]}
