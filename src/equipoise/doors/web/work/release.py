"""Runs of the Release page: `balance` as on the command line, and `verify`."""

from pathlib import Path
from typing import Any

import equipoise as eq
from equipoise.doors.report.report_sections import balance, find_axes, limit_row
from equipoise.doors.web.full_paths import without_folders
from equipoise.ground.errors import RefusedError
from equipoise.ground.progress import Progress
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.releases.release import Release
from equipoise.releases.table_release import TableRelease

REFUSAL = "refused.html"


def release(progress: Progress, policy: Path, out: Path, page: Path, overwrite: bool) -> dict[str, Any]:
    """Balance and release; a refusal is a result too, with its report page."""
    page.unlink(missing_ok=True)
    try:
        published = eq.balance(policy, out=out, report=page, overwrite=overwrite, progress=progress)
    except RefusedError as error:
        return {"released": False, "words": without_folders(str(error)), "page": page.is_file()}
    return {"released": True, "folder": out.name, **_release_facts(published, Job.load(policy).policy())}


def _release_facts(published: Release | TableRelease, policy: Policy) -> dict[str, Any]:
    """Facts of a release for the page: the balance in a sentence, the limits with their margins, and the steps."""
    rows = [limit_row(limit, published.trial, published.trial) for limit in policy.parsed]
    words = balance(published.trial, published.original, find_axes(published.trial.scores, policy))
    if isinstance(published, Release):
        steps, assumes = [law.words for law in published.data.history], published.evidence["assumes"]
    else:
        steps, assumes = published.trial.recipe.words().split("; "), []
    return {"words": words, "assumes": assumes, "limits": rows, "done": steps}


def verify_release(progress: Progress, folder: Path) -> dict[str, Any]:
    """Verify a release folder: the outcome and every check."""
    progress(0, 1, "making the release again")
    verdict = eq.verify(folder)
    return {"outcome": verdict.outcome, "words": verdict.words, "checks": verdict.to_plain()["checks"]}
