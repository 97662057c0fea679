"""Names of files that a text of a policy may hold, whole or inside the text of a method."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

NAME_ENDS = re.compile(r"[\s'\"(),=|&:+]")
"""What may stand before or after the name of a file in the text of a method: population='people.csv'."""
MAX_NAME_ENDS = 64
"""Such characters that the name of a file may hold itself."""
SLASH_IN_PROSE = re.compile(r"(?<=[\w)]) / (?=[\w(])")


def path_names(plain: Any) -> Iterator[str]:
    """Everything in nested data, keys too, that may be the name of a file; no field has to be known to name one.

    >>> "a b.csv" in set(path_names({"rule": "k-map:3,population=a b.csv"}))
    True
    """
    for text in _texts(plain):
        for part in (text, *_quoted(text)):
            yield from _parts(SLASH_IN_PROSE.sub(" ", part))


def _texts(plain: Any) -> Iterator[str]:
    """Every text in nested data, keys too."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, Mapping):
        for key, value in plain.items():
            yield from (*_texts(key), *_texts(value))
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from _texts(value)


def _quoted(text: str) -> Iterator[str]:
    """Quoted texts in the call of a method as Python reads them: escapes undone, neighbours joined, to any depth."""
    begin, end = text.find("("), text.rfind(")")
    if begin < 0 or not {"'", '"'} & set(text):
        return
    try:
        nodes = list(ast.walk(ast.parse(f"_{text[begin : end + 1]}", mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for value in [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]:
        yield value
        yield from _quoted(value)


def _parts(text: str) -> Iterator[str]:
    """The text and each part of it between two characters that may end a name."""
    ends = [-1, *(match.start() for match in NAME_ENDS.finditer(text)), len(text)]
    yield text
    for first in range(len(ends) - 1):
        for last in ends[first + 1 : first + 2 + MAX_NAME_ENDS]:
            if part := text[ends[first] + 1 : last].strip():
                yield part
