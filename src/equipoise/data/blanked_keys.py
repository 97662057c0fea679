"""A release whose blanked key values were exchanged among records, as it was with the blanks: the bound of its risk."""

from dataclasses import dataclass, replace

import polars as pl

from equipoise.data.records import Law, Records


@dataclass(frozen=True, eq=False, repr=False)
class BlankedKeys:
    """The key columns with blanks, a row per released record, and the law of the local suppression that left them."""

    table: pl.DataFrame
    law: Law


def with_blanks(released: Records) -> Records:
    """The release with blanks where values were exchanged, for those who bound what anybody can tell from its keys.

    Exchanged values are drawn from the blanked file and the margins of the original, so that records which are
    identical with blanks cannot be told apart after the exchange either. The release itself where nothing was
    exchanged, where a later mask changed keys or left records out, and where the blanks are not known: read from disk.
    """
    places = [place for place, law in enumerate(released.history) if isinstance(law.detail, BlankedKeys)]
    if not places:
        return released
    blanked: BlankedKeys = released.history[places[-1]].detail
    later = released.history[places[-1] + 1 :]
    keys = set(blanked.table.columns)
    changed = len(places) > 1 or any(keys & set(law.columns) for law in later) or not keys <= set(released.schema())
    if changed or released.height() != blanked.table.height or any(law.mask == "shuffle_order" for law in later):
        return released
    history = (*released.history[: places[-1]], blanked.law, *later)
    table = released.collect().with_columns(blanked.table)
    return replace(Records.of(table, released.roles, released.source, released.labels), history=history)
