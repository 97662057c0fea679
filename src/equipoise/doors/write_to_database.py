"""Released data back into the database that the query asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.doors.cli.shared_options import asked
from equipoise.files import load, query, quoted, store
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError, RolesError
from equipoise.releases.release import Release


@dataclass(frozen=True)
class Goal:
    """A table of a database; its address may hold a password."""

    table: str
    database: str

    def refuse(self, overwrite: bool) -> None:
        """Refuse a table that is there already, before any work."""
        if not overwrite and self._exists():
            raise DataError(f"There is a table {self.table!r} already: name another, or add --overwrite.")

    def _exists(self) -> bool:
        try:
            query(f"SELECT * FROM {quoted(self.table)} LIMIT 0", self.database)
        except (DataError, ParameterError, RolesError):
            return False
        return True

    def put(self, made: Release, overwrite: bool) -> None:
        """The data of a release that was written, as the table."""
        data = load(made.public / made.evidence["output"]["file"])
        try:
            store(data, self.table, self.database, overwrite=overwrite)
        except EquipoiseError as error:
            raise type(error)(f"The release is in {str(made.folder)!r}, but not in the database: {error}") from None


def goal(into: str | None, file: Path | None, options: Mapping[str, Any]) -> Goal | None:
    """Where released data goes beside the release folder, if anywhere."""
    if into is None:
        return None
    database = asked(file, options)[1].get("database")
    if database in (None, ":memory:"):
        raise ParameterError("--into is for --query on a database: name it with FILE or --database.")
    return Goal(into, str(database))


def in_memory(records: Records) -> Records:
    """The records, without the connection that keeps others from writing into the database."""
    return Records.of(records.collect(), records.roles, records.source, records.labels)
