"""Order of a release: records as users get them, drawn from the secret seed, without ids; also as frames."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from equipoise.data import engines
from equipoise.data.records import Records
from equipoise.ground.randomness import Draws
from equipoise.releases.released_categories import without_absent

ROW_ORDER_STEP = 1 << 20
"""The step of the seed's draws that orders the released records, beyond any mask's."""


class ReleasedFrames:
    """Released data as frames, as they are handed out: in release order, without ids; pandas has a fresh index."""

    def handed_out(self) -> Records:
        """The released records as users get them."""
        raise NotImplementedError

    def to_native(self) -> Any:
        """The released data, of the kind that came in."""
        return self.handed_out().to_native()

    def to_polars(self) -> pl.DataFrame:
        """The released data as a Polars frame."""
        return self.handed_out().collect()

    def to_pandas(self) -> Any:
        """The released data as a pandas frame."""
        return engines.restore(self.handed_out().frame, "pandas")


def handed_out(released: Records, withheld: Sequence[str], seed: int | None) -> Records:
    """The records as users get them: ordered by the seed, without withheld columns and absent categories."""
    frame = in_release_order(without_absent(released), seed).drop(list(withheld), strict=False)
    return replace(released, frame=frame, roles=released.roles.only(engines.columns(frame)))


def in_release_order(records: Records, seed: int | None) -> engines.Frame:
    """The records in the order in which they are released: drawn from the seed, or as they came without one."""
    return records.frame if seed is None else shuffled(records, seed)


def shuffled(records: Records, seed: int) -> engines.Frame:
    """The records in an order drawn from the secret seed."""
    if records.kind == "pyspark":
        return engines.shuffled(records.frame, seed)
    draws = Draws(seed).child(ROW_ORDER_STEP)
    places = np.argsort(draws.uniform(records.keys_of_rows()), kind="stable")
    return engines.like(records.frame, records.collect()[places])
