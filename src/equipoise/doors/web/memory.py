"""Memory of the worker process: the open file, and a cache of answers about it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw

from equipoise.data.cells import Cells, count
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.files.memory import refuse_work
from equipoise.inspection.direct_identifiers import without_direct

T = TypeVar("T")
Policy = Mapping[str, Any]
"""A policy, or the settings of a page, as plain data."""
MAX_ANSWERS, MAX_LARGE_ANSWERS = 64, 3
"""Answers kept at most, and how many of them may be records, or cells."""


class Memory:
    """The data of one file and the latest answers about it; used in the worker process only."""

    def __init__(self) -> None:
        self.answers: OrderedDict[Hashable, Any] = OrderedDict()
        self.file: tuple[Hashable, Records] | None = None

    def raw(self, folder: Path, data: Mapping[str, Any]) -> Records:
        """The file in memory, without roles; read again when it has changed."""
        path = folder / str(data["path"])
        state = path.stat() if path.exists() else None
        name = (str(path), state and (state.st_mtime_ns, state.st_size), frozen(data))
        if self.file is None or self.file[0] != name:
            self.answers.clear()
            self.file = None
            options = {key: value for key, value in data.items() if key != "path"}
            if "metadata" in options:
                options["metadata"] = folder / options["metadata"]
            records = read(path, **options)
            refuse_work(records, "open")
            if records.frame.implementation.is_polars():
                records = replace(records, frame=nw.from_native(records.collect().lazy()))
            self.file = (name, records)
        return self.file[1]

    def records(self, folder: Path, policy: Policy) -> Records:
        """The file with the roles of a policy, direct identifiers left out."""

        def prepare() -> Records:
            records = replace(self.raw(folder, policy["data"]), roles=Roles.from_plain(policy.get("roles", {}), folder))
            records.check()
            return without_direct(records)

        self.raw(folder, policy["data"])
        return self.once_for(policy, "records", prepare)

    def cells(self, folder: Path, policy: Policy) -> Cells:
        """The cell table: the occupied combinations of the keys."""
        records = self.records(folder, policy)
        return self.once_for(policy, "cells", lambda: count(records))

    def once_for(self, policy: Policy, name: Hashable, make: Callable[[], T]) -> T:
        """An answer that depends on the file and the roles of its columns."""
        return self.once((name, frozen(policy["data"]), frozen(policy.get("roles", {}))), make)

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """The answer from the cache, or a new one; the oldest answers are dropped."""
        if name not in self.answers:
            self.answers[name] = make()
            self._forget()
        self.answers.move_to_end(name)
        return self.answers[name]

    def _forget(self) -> None:
        """Drop the oldest answers, large ones sooner."""
        for kind in (Records, Cells):
            large = [name for name, answer in self.answers.items() if isinstance(answer, kind)]
            for name in large[:-MAX_LARGE_ANSWERS]:
                del self.answers[name]
        while len(self.answers) > MAX_ANSWERS:
            self.answers.popitem(last=False)


def frozen(value: Any) -> Hashable:
    """Plain data as a hashable key.

    >>> frozen({"b": [1], "a": None})
    (('a', None), ('b', (1,)))
    """
    if isinstance(value, Mapping):
        return tuple(sorted((key, frozen(inner)) for key, inner in value.items()))
    return tuple(frozen(inner) for inner in value) if isinstance(value, list | tuple) else value
