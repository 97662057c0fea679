"""Assumptions behind the risks of a release: what an intruder is taken not to know, or not to be able to tell.

They stand in the headline of both reports, in the evidence and on the screen: a limit that holds only if somebody does
not know something is not simply met.
"""

from collections.abc import Iterator

from equipoise.data.cells import count
from equipoise.data.records import Records


def assumptions(released: Records) -> tuple[str, ...]:
    """What the scores of a release assume, each as a sentence. O(cells).

    >>> import equipoise as eq, polars as pl
    >>> assumptions(eq.read(pl.DataFrame({"age": [30, None]}), eq.Roles("age", missing="any")))
    ('Assumes that nobody can tell why a key is missing: a blank could be anything.',)
    """
    return tuple(_assumptions(released))


def _assumptions(released: Records) -> Iterator[str]:
    keys = released.roles.keys
    if keys and released.roles.missing == "any" and any(axis.null_count() for axis in count(released).cube.axes):
        yield "Assumes that nobody can tell why a key is missing: a blank could be anything."
