"""State that all routes share: the workspace, the session, the worker process and the background runs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Request

from equipoise.doors.web.background_runs import Runs
from equipoise.doors.web.session import Draft, Session, SessionStep
from equipoise.doors.web.worker import Desk
from equipoise.doors.web.workspace import Workspace
from equipoise.ground.errors import DataError, EquipoiseError

SESSION_FILE = "session.json"
VERSION_HEADER = "X-Version"


class Stale(EquipoiseError):
    """The page is older than the session, which was changed in another window."""


class Office:
    """State of one user working on one file. `edit` makes one change at a time and saves it before it returns."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.desk = Desk()
        self.runs = Runs(workspace)
        self.csrf = token_urlsafe(24)
        self.session = Session.from_plain(workspace.kept(SESSION_FILE))
        self._lock = Lock()

    @property
    def policy(self) -> Mapping[str, Any]:
        return self.session.policy

    @property
    def opened(self) -> bool:
        return "data" in self.policy

    @property
    def data_name(self) -> str:
        """The name of the open file without its endings."""
        return Path(self.policy["data"]["path"]).name.partition(".")[0]

    def need_file(self) -> Mapping[str, Any]:
        """The policy; an error where no file is open."""
        if not self.opened:
            raise DataError("Open a file first.")
        return self.policy

    def ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Answer `question(memory, folder, policy, *arguments)` about the open file, in the worker process."""
        self.workspace.refuse_outside(arguments)
        return self.desk.ask(question, self.workspace.folder, self.need_file(), *arguments)

    def edit(self, request: Request | None, words: str, page: str, change: Callable[[Draft], Draft]) -> None:
        """Add a step with the changed draft. A page older than the session is refused."""
        self._move(request, lambda session: session.took(SessionStep(words, page, change(session.draft))))

    def undo(self, request: Request) -> None:
        self._move(request, Session.undone)

    def redo(self, request: Request) -> None:
        self._move(request, Session.redone)

    def _move(self, request: Request | None, change: Callable[[Session], Session]) -> None:
        with self._lock:
            if request is not None and request.headers.get(VERSION_HEADER, "") != str(self.session.version):
                raise Stale("This was changed in another window: load the page again to see how it stands.")
            session = change(self.session)
            self.workspace.refuse_outside({**session.draft, "policy": None})
            self.workspace.refuse_policy(session.policy)
            self.workspace.keep(SESSION_FILE, session.to_plain())
            self.session = session

    def close(self) -> None:
        self.runs.close()
        self.desk.close()


def office_of(request: Request) -> Office:
    return request.app.state.office


Here = Annotated[Office, Depends(office_of)]
