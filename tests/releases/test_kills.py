"""Every verb that writes, killed at any moment: nothing partial, nothing lost, nothing left."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

TABLE_POLICY = """
format = 1
[data]
path = "people.csv"
[table]
by = ["sex", "region"]
[limits]
"exposed(rule='min-count:3')" = "<= 0"
[[candidates]]
masks = [{ use = "suppress", rule = "min-count:3" }]
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX systems do")
def test_killed_at_any_moment(full: Any) -> None:
    """A few here, fifty in full; any number by hand: `python -m torture --parts kills --kills NUMBER`."""
    args = [sys.executable, "-m", "torture", "--parts", "kills", "--seed", "2026", "--kills", str(full(4, 50))]
    done = subprocess.run(args, capture_output=True, check=False, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="There is no full device here.")
def test_a_release_that_stands_ends_with_0_where_its_summary_cannot_be_shown(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,age\n" + "f,30\nm,40\n" * 5, encoding="utf-8")
    run = "import sys; from equipoise.doors.cli import main; sys.exit(main(sys.argv[1:]))"
    args = [sys.executable, "-c", run, "protect", "people.csv", "--keys", "sex", "--mask", "top-code:age,30"]
    with Path("/dev/full").open("w", encoding="utf-8") as full_device:
        done = subprocess.run(
            [*args, "--out", "out"], stdout=full_device, stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False
        )
        nothing = subprocess.run([*args[:-2], "--out", "out"], stdout=full_device, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "'out' was written and is whole" in done.stderr
    assert (tmp_path / "out" / "public" / "evidence.json").exists()
    assert nothing.returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send to oneself.")
def test_a_request_to_end_while_the_journal_is_removed_leaves_none(tmp_path: Path) -> None:
    """The signal comes with the very operation that removes it: the release stands, so the run ends with 0."""
    rows = "".join(f"{'fm'[i % 2]},{20 + i % 9},{'ns'[i % 4 // 2]}\n" for i in range(90))
    (tmp_path / "people.csv").write_text(f"sex,age,region\n{rows}", encoding="utf-8")
    (tmp_path / "table.toml").write_text(TABLE_POLICY, encoding="utf-8")
    run = (
        "import os, signal, sys\n"
        "def hear(event, args):\n"
        "    if event == 'os.remove' and str(args[0]).endswith('.journal') and os.path.exists('out'):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.addaudithook(hear)\n"
        "from equipoise.doors.cli import main\n"
        "sys.exit(main(['balance', 'table.toml', '--out', 'out']))\n"
    )
    ended = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "'out' was written and is whole" in ended.stderr
    assert "Nothing was released" not in ended.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "people.csv", "table.toml"]
