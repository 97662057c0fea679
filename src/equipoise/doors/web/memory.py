"""What the desk's process holds: the file in memory, and what was counted from it."""

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
from equipoise.inspection.direct_identifiers import without_direct

T = TypeVar("T")
MOST, LARGE = 64, 3
"""Answers that are kept, and how many of them may be whole files or their cells."""


class Memory:
    """The data of one file, and the latest answers about it; asked in the desk's process only."""

    def __init__(self) -> None:
        self.answers: OrderedDict[Hashable, Any] = OrderedDict()
        self.file: tuple[Hashable, Records] | None = None

    def raw(self, folder: Path, data: Mapping[str, Any]) -> Records:
        """The file in memory, without roles: read once, again when it has changed."""
        path = folder / str(data["path"])
        state = path.stat() if path.exists() else None
        name = (str(path), state and (state.st_mtime_ns, state.st_size), tuple(sorted(data.items())))
        if self.file is None or self.file[0] != name:
            self.answers.clear()
            self.file = None
            options = {key: value for key, value in data.items() if key != "path"}
            if "metadata" in options:
                options["metadata"] = folder / options["metadata"]
            found = read(path, **options)
            if found.frame.implementation.is_polars():
                found = replace(found, frame=nw.from_native(found.collect().lazy()))
            self.file = (name, found)
        return self.file[1]

    def records(self, folder: Path, policy: Mapping[str, Any]) -> Records:
        """The file with the roles of a policy, direct identifiers left out."""

        def made() -> Records:
            records = replace(self.raw(folder, policy["data"]), roles=Roles.from_plain(policy.get("roles", {}), folder))
            records.check()
            return without_direct(records)

        self.raw(folder, policy["data"])
        return self.once(("records", frozen(policy["data"]), frozen(policy.get("roles", {}))), made)

    def cells(self, folder: Path, policy: Mapping[str, Any]) -> Cells:
        """The occupied combinations of the keys."""
        records = self.records(folder, policy)
        return self.once(("cells", frozen(policy["data"]), frozen(policy.get("roles", {}))), lambda: count(records))

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """An answer that was given before, or a new one; the oldest are forgotten."""
        if name not in self.answers:
            self.answers[name] = make()
            self._forget()
        self.answers.move_to_end(name)
        found: T = self.answers[name]
        return found

    def _forget(self) -> None:
        """Let go of the oldest answers, and of the oldest large ones sooner."""
        for kind in (Records, Cells):
            large = [name for name, answer in self.answers.items() if isinstance(answer, kind)]
            for name in large[:-LARGE]:
                del self.answers[name]
        while len(self.answers) > MOST:
            self.answers.popitem(last=False)


def frozen(value: Any) -> Hashable:
    """Plain data as something that can be looked up by.

    >>> frozen({"b": [1], "a": None})
    (('a', None), ('b', (1,)))
    """
    if isinstance(value, Mapping):
        return tuple(sorted((key, frozen(inner)) for key, inner in value.items()))
    return tuple(frozen(inner) for inner in value) if isinstance(value, list | tuple) else value
