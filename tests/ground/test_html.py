"""Pieces of HTML: escaped, and no column without anything in it."""

from equipoise.ground.html import card, grid, paragraph


def test_everything_is_escaped():
    made = card("<a>", paragraph("<x>"), grid(["<c>", "d"], [["<e>", "<f>"]]))
    assert not [tag for tag in ("<a>", "<x>", "<c>", "<e>", "<f>") if tag in made]
    assert "&lt;e&gt;" in made


def test_empty_columns_and_lines_are_left_out():
    made = grid(["a", "b", "c"], [["1", "", "3"], ["4", "", ""]])
    assert made.count("<th scope") == 4
    assert made.count("<td") == 2
    assert paragraph("") == ""
    assert grid(["a"], []).count("<tr>") == 1
