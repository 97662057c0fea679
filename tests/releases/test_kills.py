"""Kill -9 during a balance: never a partial folder, never a changed input, the next run ends in the same release."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX systems do")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """A dozen here; any number by hand: `python tests/releases/kills.py FOLDER 50 SEED`."""
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), "12", "2026"], capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["wrong"] for one in found] == [[]] * len(found)
    assert sum(bool(one["hit"]) for one in found) == 12
