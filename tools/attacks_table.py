"""Runs tests/redteam in full and writes what was reported and what attackers reached into docs/attacks.md.

`make redteam`, or `python tools/attacks_table.py`. Without the folder EQUIPOISE_DATA real files are not attacked, and
their rows of the table stay as they are; so do all others that are not made again where files of tests are named:
`python tools/attacks_table.py tests/redteam/test_noise.py`. Where an attacker does better than reported nothing is
written.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "attacks.md"
BEGIN, END = "<!-- redteam -->\n", "<!-- end of redteam -->"
HEAD = ("mask", "parameter", "file", "share that is", "reported", "reached")
MADE_HERE = ("made", "demo survey")
"""Files that need no data folder."""
Row = tuple[str, ...]


def main(files: Sequence[str] = ()) -> int:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        variables = {**os.environ, "EQUIPOISE_EVIDENCE": "1", "EQUIPOISE_ATTACK_ROWS": str(path)}
        tests = [sys.executable, "-m", "pytest", "-q", *(files or [str(ROOT / "tests" / "redteam")])]
        outcome = subprocess.run(tests, cwd=ROOT, env=variables, check=False).returncode
        if outcome:
            return outcome
        results = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    page = PAGE.read_text(encoding="utf-8")
    rows = table(results)
    made = {row[:4] for row in rows}
    old = [row for row in printed(page) if row[:4] not in made]
    if not files:
        old = [row for row in old if row[2] not in MADE_HERE] if "EQUIPOISE_DATA" not in os.environ else []
    rows = sorted([*rows, *old])
    PAGE.write_text(with_table(page, rows), encoding="utf-8")
    print(f"redteam: {len(rows)} rows in docs/attacks.md, none reached above what is reported")
    return 0


def table(results: Iterable[dict[str, str | float]]) -> list[Row]:
    """One row for each mask, parameter, file and measure: the case in which most was reached."""
    strongest: dict[Row, tuple[float, float]] = {}
    for result in results:
        name = tuple(str(result[field]) for field in ("mask", "parameter", "file", "measure"))
        pair = float(result["reached"]), float(result["reported"])
        strongest[name] = max(strongest.get(name, (-1.0, 0.0)), pair)
    return sorted((*name, _digits(reported), _digits(reached)) for name, (reached, reported) in strongest.items())


def _digits(share: float) -> str:
    return f"{max(share, 0.0):.2g}"


def printed(page: str) -> list[Row]:
    """The rows of the table on the page."""
    lines = page.split(BEGIN)[1].split(END)[0].strip().splitlines()[2:]
    return [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]


def with_table(page: str, rows: Iterable[Row]) -> str:
    """The page with this table between its marks."""
    lines = [HEAD, ("---", "---", "---", "---", "---:", "---:"), *rows]
    text = "".join(f"| {' | '.join(row)} |\n" for row in lines)
    return page.split(BEGIN)[0] + BEGIN + text + END + page.split(END, 1)[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
