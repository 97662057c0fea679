"""docs/attacks.md says what the attacks find: some of its rows are made again, and every row is there."""

import os
from pathlib import Path

import pytest
from benchmarks import attack_table
from benchmarks.attack_table import FILES, HEAD, PAGE, File, attacked

import equipoise as eq

SURVEY, CASC = FILES[0], FILES[1]
LOCATION = os.environ.get("EQUIPOISE_DATA")
ROWS = ("none", "noise 0.1 sd", "microaggregation, groups of 3", "rank swap, window 0.05")
WEAK_AND_STRONG = (
    ("noise 0.05 sd", "noise 0.2 sd"),
    ("noise 0.05 sd, correlated", "noise 0.2 sd, correlated"),
    ("microaggregation, groups of 3", "microaggregation, groups of 10"),
    ("rank swap, window 0.01", "rank swap, window 0.15"),
)


def printed(file: File) -> dict[str, list[str]]:
    """The rows of a file's table, by mask."""
    page = PAGE.read_text(encoding="utf-8")
    text = page.split(f"<!-- {file.name} -->")[1].split(f"<!-- end of {file.name} -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert tuple(rows[0]) == HEAD
    return {row[0]: row for row in rows[2:]}


def check(file: File, name: str) -> None:
    original = file.records(Path(LOCATION) if LOCATION else None)
    assert original is not None
    for made, said in zip(
        attacked(original, name, file.masks(file.known)[name]).cells(), printed(file)[name], strict=True
    ):
        assert made == said or float(made) == pytest.approx(float(said), abs=0.11)


@pytest.mark.parametrize("name", ROWS[1::2])
@pytest.mark.skipif(not LOCATION, reason="The table of CASCrefmicrodata was not made again: set EQUIPOISE_DATA.")
def test_rows_of_the_reference_file(name: str) -> None:
    check(CASC, name)


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_the_survey(name: str) -> None:
    check(SURVEY, name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_mask_has_its_row(file: File) -> None:
    assert list(printed(file)) == list(file.masks(file.known))


@pytest.mark.parametrize("file", FILES[:4], ids=lambda file: file.name)
@pytest.mark.parametrize(("weak", "strong"), WEAK_AND_STRONG)
def test_weaker_masks_give_more_away(file: File, weak: str, strong: str) -> None:
    rows = printed(file)
    for column in ("nearest", "interval"):
        place = HEAD.index(column)
        assert float(rows[strong][place]) < float(rows[weak][place]) <= float(rows["none"][place])


def test_unmasked_files_give_away_whoever_is_unique() -> None:
    for file in FILES[:3]:
        assert float(printed(file)["none"][1]) > 99


def test_the_survey_table_can_be_written_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the folder of public files only the survey's table is made, and the others stay."""
    few = {"noise 0.1 sd": (eq.masks.Noise(SURVEY.known, 0.1),)}
    page = tmp_path / "attacks.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(attack_table, "PAGE", page)
    monkeypatch.setattr(attack_table, "FILES", (File(SURVEY.name, SURVEY.known, None, lambda _: few), *FILES[1:]))
    monkeypatch.delenv("EQUIPOISE_DATA", raising=False)
    attack_table.main()
    said = page.read_text(encoding="utf-8")
    kept = PAGE.read_text(encoding="utf-8").split("<!-- Demo survey -->")[0]
    assert said.startswith(kept)
    rows = [line for line in said.split("<!-- Demo survey -->")[1].splitlines() if line[:1] == "|"]
    assert [row.split("|")[1].strip() for row in rows[2:]] == list(few)
