"""Session: every step that was taken, each with the draft it led to; undo and redo move along them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

FORMAT = 1
Draft = Mapping[str, Any]
"""What is worked on, as plain data: `policy` is a policy as a file has it, `table` and `publish` the settings there."""
EMPTY: Draft = {"policy": {}, "table": {}, "publish": {}}


@dataclass(frozen=True)
class SessionStep:
    """One thing the user did: in words, on which page, and the draft after it."""

    words: str
    page: str
    draft: Draft


@dataclass(frozen=True)
class Session:
    """Steps, how many of them count (the others are undone), and a number that grows with every change.

    >>> begun = Session().took(SessionStep("Opened a file", "open", {"policy": {"title": "a"}}))
    >>> begun.undone().draft == EMPTY, begun.undone().redone().draft["policy"]
    (True, {'title': 'a'})
    """

    steps: tuple[SessionStep, ...] = ()
    at: int = 0
    version: int = 0

    @property
    def draft(self) -> Draft:
        return {**EMPTY, **self.steps[self.at - 1].draft} if self.at else EMPTY

    @property
    def policy(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.draft["policy"]
        return found

    @property
    def undoes(self) -> str:
        """What undo would take back; nothing where there is nothing."""
        return self.steps[self.at - 1].words if self.at else ""

    @property
    def redoes(self) -> str:
        return self.steps[self.at].words if self.at < len(self.steps) else ""

    def took(self, step: SessionStep) -> "Session":
        """A new step; what was undone before is gone."""
        return Session((*self.steps[: self.at], step), self.at + 1, self.version + 1)

    def undone(self) -> "Session":
        return replace(self, at=max(0, self.at - 1), version=self.version + 1)

    def redone(self) -> "Session":
        return replace(self, at=min(len(self.steps), self.at + 1), version=self.version + 1)

    def to_plain(self) -> dict[str, Any]:
        steps = [{"words": s.words, "page": s.page, "draft": s.draft} for s in self.steps]
        return {"format": FORMAT, "at": self.at, "version": self.version, "steps": steps}

    @classmethod
    def from_plain(cls, plain: Any) -> "Session":
        """From plain data; an empty session where it is none of ours."""
        try:
            if plain["format"] != FORMAT:
                return cls()
            steps = tuple(SessionStep(str(s["words"]), str(s["page"]), dict(s["draft"])) for s in plain["steps"])
            return cls(steps, min(max(0, int(plain["at"])), len(steps)), int(plain["version"]))
        except (KeyError, TypeError, ValueError):
            return cls()
