"""Results of the checks of a release folder, and their overall outcome."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["verified", "refused", "unproven"]
UNPROVEN = (
    "Cannot be proven from this folder alone: nothing here contradicts it, but whoever changed it could have written "
    "every hash anew. Give the original file, or the public key that it must be signed with."
)


@dataclass(frozen=True)
class Check:
    """Result of one check: it holds, it fails, or it could not be run (None).

    `proof` marks a check that rewriting hashes cannot pass: a signature by a known key, or a replay of the release.
    """

    name: str
    holds: bool | None
    words: str
    proof: bool = False


@dataclass(frozen=True)
class Verification:
    """The checks of one release folder and their outcome; true when verified.

    >>> bool(Verification(Path("r"), (Check("files", True, "Every file is as the evidence says."),)))
    False
    """

    folder: Path
    checks: tuple[Check, ...]

    @property
    def outcome(self) -> Outcome:
        """Refused when a check fails; verified when one proves it; else unproven."""
        if any(check.holds is False for check in self.checks):
            return "refused"
        return "verified" if any(check.holds and check.proof for check in self.checks) else "unproven"

    def __bool__(self) -> bool:
        return self.outcome == "verified"

    @property
    def reasons(self) -> tuple[str, ...]:
        """The failed checks, or those that were not run and would have proven it."""
        outcome = False if self.outcome == "refused" else None
        return tuple(check.words for check in self.checks if check.holds is outcome)

    @property
    def words(self) -> str:
        """The outcome in one sentence."""
        if self.outcome == "verified":
            how = [check.words for check in self.checks if check.holds and check.proof]
            return f"Verified. {' '.join(how)}"
        if self.outcome == "refused":
            return f"Refused. {' '.join(self.reasons)}"
        return UNPROVEN

    def to_plain(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        checks = [{"check": c.name, "holds": c.holds, "proof": c.proof, "words": c.words} for c in self.checks]
        return {"folder": str(self.folder), "outcome": self.outcome, "words": self.words, "checks": checks}


def failing(name: str, faults: Iterable[str], otherwise: str) -> Check:
    """A check that fails with the list of its faults, or holds with the text `otherwise`."""
    listed = list(faults)
    return Check(name, not listed, " ".join(listed) if listed else otherwise)
