"""The Python door: flow functions with the report attached."""

from collections.abc import Iterable
from pathlib import Path

from equipoise.core.method import Mask
from equipoise.core.progress import Progress
from equipoise.core.records import Records
from equipoise.doors.report import render
from equipoise.flow import balance as flow
from equipoise.flow.policy import Policy
from equipoise.flow.recipe import Recipe
from equipoise.flow.release import Release
from equipoise.flow.release import release as write


def release(
    records: Records,
    recipe: Recipe,
    policy: Policy,
    out: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
) -> Release:
    """Run a recipe, measure the released records, refuse if a limit is broken, and write the release folder.

    `out` is written whole or not at all: `public/` (data, report, evidence) and `private/` (seed, policy, internal
    report, journal). An existing release is replaced only with `overwrite=True`. `format` is csv, parquet or arrow.
    """
    return write(records, recipe, policy, out, render=render, format=format, overwrite=overwrite)


def balance(
    policy: str | Path, *, out: str | Path | None = None, overwrite: bool = False, progress: Progress | None = None
) -> Release:
    """The main job: read what a policy file names, try its candidates, choose the best inside limits, release it."""
    return flow.balance(policy, render=render, out=out, overwrite=overwrite, progress=progress)


def protect(
    records: Records,
    masks: Iterable[Mask],
    out: str | Path,
    *,
    policy: Policy | None = None,
    seed: int | None = None,
    format: str | None = None,
    overwrite: bool = False,
    register: str | Path | None = None,
) -> Release:
    """Apply masks in order and release the result with its report; limits are optional here.

    `register` is the private file in which the seeds of random masks are kept, one per data asset.
    """
    return flow.protect(
        records,
        masks,
        out,
        render=render,
        policy=policy,
        seed=seed,
        format=format,
        overwrite=overwrite,
        register=register,
    )
