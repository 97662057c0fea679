"""HTML fragments for notebooks: escaped, without scripts or assets, in the colours of the page around them."""

from collections.abc import Iterable, Sequence
from html import escape

BORDER_STYLE = "1px solid rgba(128,128,128,.35)"
CELL_STYLE = "padding:.2em .8em .2em 0;vertical-align:top;background:none;"


def card(title: str, *parts: str) -> str:
    """A heading and the parts below it; the parts are markup.

    >>> card("a < b", paragraph("x & y"))
    '<div style="max-width:52em;line-height:1.45"><b>a &lt; b</b><p style="margin:.3em 0">x &amp; y</p></div>'
    """
    return f'<div style="max-width:52em;line-height:1.45"><b>{escape(title)}</b>{"".join(parts)}</div>'


def paragraph(text: str, *, faint: bool = False) -> str:
    """A paragraph of escaped text."""
    style = "margin:.3em 0" + (";opacity:.75;font-size:.9em" if faint else "")
    return f'<p style="{style}">{escape(text)}</p>' if text else ""


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """A table; the first `words` columns are text, aligned left, the others numbers, aligned right.

    Empty columns are omitted.
    """
    table = [tuple(row) for row in rows]
    columns = [place for place in range(len(heads)) if not place or any(row[place] for row in table)]
    top = "".join(_cell("th", heads[place], place >= words, ' scope="col"') for place in columns)
    body = "".join(f"<tr>{''.join(_row_cell(row, place, words) for place in columns)}</tr>" for row in table)
    style = "border-collapse:collapse;margin:.5em 0;font-size:inherit;font-variant-numeric:tabular-nums"
    return f'<table style="{style}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def _row_cell(row: Sequence[str], place: int, words: int) -> str:
    tag, more = ("td", "") if place else ("th", ' scope="row"')
    return _cell(tag, row[place], place >= words, more)


def _cell(tag: str, text: str, number: bool, more: str = "") -> str:
    weight = "font-weight:600;" if tag == "th" and "col" in more else "font-weight:400;"
    align = "right" if number else "left"
    style = f"{CELL_STYLE}{weight}border-bottom:{BORDER_STYLE};text-align:{align};white-space:normal"
    return f'<{tag}{more} style="{style}">{escape(text)}</{tag}>'
