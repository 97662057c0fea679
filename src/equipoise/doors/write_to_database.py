"""Write released data into the database that the records were queried from."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.data.records import Records
from equipoise.doors.cli.shared_options import source_of
from equipoise.files import load, query, quoted, store
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError, RolesError
from equipoise.releases.release import Release


@dataclass(frozen=True)
class Goal:
    """The database table to write to; the address of the database may hold a password."""

    table: str
    database: str

    def refuse(self, overwrite: bool) -> None:
        """Refuse a table that exists already, before any work."""
        if not overwrite and self._exists():
            raise DataError(f"There is a table {self.table!r} already: name another, or add --overwrite.")

    def _exists(self) -> bool:
        try:
            query(f"SELECT * FROM {quoted(self.table)} LIMIT 0", self.database)
        except (DataError, ParameterError, RolesError):
            return False
        return True

    def put(self, release: Release, overwrite: bool) -> None:
        """Write the data of a release to the table."""
        data = load(release.public / release.evidence["output"]["file"])
        try:
            store(data, self.table, self.database, overwrite=overwrite)
        except EquipoiseError as error:
            raise type(error)(f"The release is in {str(release.folder)!r}, but not in the database: {error}") from None


def goal(into: str | None, file: Path | None, options: Mapping[str, Any]) -> Goal | None:
    """The database table that released data also goes to, if any."""
    if into is None:
        return None
    database = source_of(file, options)[1].get("database")
    if database in (None, ":memory:"):
        raise ParameterError("--into is for --query on a database: name it with FILE or --database.")
    return Goal(into, str(database))


def in_memory(records: Records) -> Records:
    """The records in memory, without the connection that would lock the database."""
    return Records.of(records.collect(), records.roles, records.source, records.labels)
