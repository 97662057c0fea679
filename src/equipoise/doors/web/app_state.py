"""Office: what the routes share: the workspace, the session, the desk and the runs."""

from collections.abc import Callable, Mapping
from secrets import token_urlsafe
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Request

from equipoise.doors.web.background_runs import Runs
from equipoise.doors.web.session import Draft, Session, SessionStep
from equipoise.doors.web.worker import Desk
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import DataError, EquipoiseError

SESSION = "session.json"
VERSION = "X-Version"


class Stale(EquipoiseError):
    """The page is older than the session: something was changed in another window."""


class Office:
    """One user at one file. Edits go through `edit`, one at a time, and are on the disk when it returns."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.desk = Desk()
        self.runs = Runs(workspace)
        self.csrf = token_urlsafe(24)
        self.session = Session.from_plain(workspace.kept(SESSION))
        self._lock = Lock()

    @property
    def policy(self) -> Mapping[str, Any]:
        return self.session.policy

    @property
    def opened(self) -> bool:
        return "data" in self.policy

    def need_file(self) -> Mapping[str, Any]:
        """The policy, refused in one sentence where no file is open."""
        if not self.opened:
            raise DataError("Open a file first.")
        return self.policy

    def ask(self, question: Callable[..., Any], *given: Any) -> Any:
        """A question about the open file: `question(held, folder, policy, *given)` where the data is."""
        return self.desk.ask(question, self.workspace.folder, self.need_file(), *given)

    def edit(self, request: Request | None, words: str, page: str, change: Callable[[Draft], Draft]) -> None:
        """Take a step: the draft as `change` makes it. A page older than the session is refused."""
        self._move(request, lambda session: session.took(SessionStep(words, page, change(session.draft))))

    def undo(self, request: Request) -> None:
        self._move(request, Session.undone)

    def redo(self, request: Request) -> None:
        self._move(request, Session.redone)

    def _move(self, request: Request | None, change: Callable[[Session], Session]) -> None:
        with self._lock:
            if request is not None and request.headers.get(VERSION, "") != str(self.session.version):
                raise Stale("This was changed in another window: load the page again to see how it stands.")
            made = change(self.session)
            self.workspace.keep(SESSION, made.to_plain())
            self.session = made

    def close(self) -> None:
        self.runs.close()
        self.desk.close()


def office_of(request: Request) -> Office:
    found: Office = request.app.state.office
    return found


Here = Annotated[Office, Depends(office_of)]
