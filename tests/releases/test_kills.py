"""Kill -9 during a balance: never a partial folder, never a changed input, the next run ends in the same release."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX systems do")
def test_killed_at_random_moments(tmp_path: Path, full: Any) -> None:
    """Two here, a dozen in full; any number by hand: `python tests/releases/kills.py FOLDER 50 SEED`."""
    kills = full(2, 12)
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(kills), "2026"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["wrong"] for one in found] == [[]] * len(found)
    assert sum(bool(one["hit"]) for one in found) == kills
