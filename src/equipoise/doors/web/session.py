"""Session of the workbench: the steps of the user, each with the resulting draft, with undo and redo."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

SESSION_FORMAT = 1
Draft = Mapping[str, Any]
"""Plain data of the pages: `policy` as in a policy file, `table` and `publish` the settings of these pages."""
EMPTY: Draft = {"policy": {}, "table": {}, "publish": {}}


def policy_text(policy: Mapping[str, Any]) -> str:
    """A policy as TOML, without empty values, as the command line reads it."""
    import tomli_w

    return tomli_w.dumps({name: value for name, value in policy.items() if value not in (None, {}, [], "")})


@dataclass(frozen=True)
class SessionStep:
    """One step of the user: in words, on which page, and the draft after it."""

    words: str
    page: str
    draft: Draft


@dataclass(frozen=True)
class Session:
    """Steps, how many of them are in effect (the others are undone), and a version that grows with every change.

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
        return self.draft["policy"]

    @property
    def undoes(self) -> str:
        """The step that undo would take back, in words; empty where there is none."""
        return self.steps[self.at - 1].words if self.at else ""

    @property
    def redoes(self) -> str:
        return self.steps[self.at].words if self.at < len(self.steps) else ""

    def took(self, step: SessionStep) -> "Session":
        """The session with a new step; undone steps are dropped."""
        return Session((*self.steps[: self.at], step), self.at + 1, self.version + 1)

    def undone(self) -> "Session":
        return replace(self, at=max(0, self.at - 1), version=self.version + 1)

    def redone(self) -> "Session":
        return replace(self, at=min(len(self.steps), self.at + 1), version=self.version + 1)

    def to_plain(self) -> dict[str, Any]:
        steps = [{"words": s.words, "page": s.page, "draft": s.draft} for s in self.steps]
        return {"format": SESSION_FORMAT, "at": self.at, "version": self.version, "steps": steps}

    @classmethod
    def from_plain(cls, plain: Any) -> "Session":
        """From plain data; an empty session where it is not valid."""
        try:
            if plain["format"] != SESSION_FORMAT:
                return cls()
            steps = tuple(SessionStep(str(s["words"]), str(s["page"]), dict(s["draft"])) for s in plain["steps"])
            return cls(steps, min(max(0, int(plain["at"])), len(steps)), int(plain["version"]))
        except (KeyError, TypeError, ValueError):
            return cls()
