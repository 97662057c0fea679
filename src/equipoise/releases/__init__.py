"""From a policy to a release folder and back: balance, release, evidence, codebook, verify, replay."""

from typing import TYPE_CHECKING

from equipoise.ground.lazy_exports import export_lazily

if TYPE_CHECKING:
    from equipoise.releases.reopen import opened, reopen

__all__ = ["opened", "reopen"]

export_lazily(__name__, opened="reopen", reopen="reopen")
