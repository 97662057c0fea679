"""Line numbers of the keys and elements of a TOML file, for error messages."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

Place = tuple[str | int, ...]
"""Keys and positions from the top of a file: ("candidates", 0, "masks", 1, "at")."""
Lines = Mapping[Place, int]
BLANK_PATTERN = re.compile(r"(?:\s|#[^\n]*)*")
GAP_PATTERN = re.compile(r"[ \t]*")
STRING_PATTERN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'", re.DOTALL
)
BARE_KEY_PATTERN = re.compile(r"[A-Za-z0-9_-]+")
PLAIN_VALUE_PATTERN = re.compile(r"[^,\]}\n#]*")


def lines_of(text: str) -> dict[Place, int]:
    """The line of every key and element of a TOML text that is known to be valid. O(characters).

    >>> found = lines_of('[data]\\npath = "x"\\n[[steps]]\\nat = [\\n1,\\n2]')
    >>> found[("data", "path")], found[("steps", 0)], found[("steps", 0, "at", 1)]
    (2, 3, 6)
    """
    return _Reader(text.replace("\r\n", "\n").lstrip("\ufeff")).read()


def line_at(lines: Lines, place: Place) -> int | None:
    """The line of a place, or of the nearest place around it.

    >>> line_at({("data",): 3}, ("data", "path")), line_at({}, ("data",))
    (3, None)
    """
    return next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)


def place_text(place: Place) -> str:
    """A place as text, positions counted from 1.

    >>> place_text(("candidates", 0, "masks", 1, "at"))
    'candidates[1].masks[2].at'
    """
    text = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


@dataclass
class _Reader:
    """Scanner that goes through the text once; strings and comments are skipped."""

    text: str
    at: int = 0

    def read(self) -> dict[Place, int]:
        self.ends = [line_of.start() for line_of in re.finditer("\n", self.text)]
        self.found: dict[Place, int] = {}
        self.lists: dict[Place, int] = {}
        table: Place = ()
        while self._skip(BLANK_PATTERN) < len(self.text):
            table = self._header() if self.text[self.at] == "[" else self._pair(table)
        return self.found

    def _skip(self, what: re.Pattern[str]) -> int:
        match = what.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _note(self, place: Place) -> None:
        self.found.setdefault(place, bisect_right(self.ends, self.at - 1) + 1)

    def _header(self) -> Place:
        several = self.text.startswith("[[", self.at)
        self.at += 2 if several else 1
        keys = self._keys()
        place: Place = ()
        for depth, key in enumerate(keys):
            place = (*place, key)
            self._note(place)
            if several and depth == len(keys) - 1:
                self.lists[place] = self.lists.get(place, 0) + 1
            if place in self.lists:
                place = (*place, self.lists[place] - 1)
                self._note(place)
        self._skip(GAP_PATTERN)
        self.at += 2 if several else 1
        return place

    def _keys(self) -> list[str]:
        """The parts of a key, dots between them."""
        keys = []
        while True:
            self._skip(GAP_PATTERN)
            start = self.at
            quoted = self.text[start] in "\"'"
            self._skip(STRING_PATTERN if quoted else BARE_KEY_PATTERN)
            keys.append(_unquoted(self.text[start : self.at]))
            if self.text[self._skip(GAP_PATTERN) : self.at + 1] != ".":
                return keys
            self.at += 1

    def _pair(self, table: Place) -> Place:
        """A key and its value; the table it stands in."""
        start, place = self.at, table
        keys = self._keys()
        end, self.at = self.at, start
        for key in keys:
            place = (*place, key)
            self._note(place)
        self.at = end + 1
        self._value(place)
        return table

    def _value(self, place: Place) -> None:
        self._skip(GAP_PATTERN)
        first = self.text[self.at]
        if first == "[":
            self._array(place)
        elif first == "{":
            self._inline(place)
        elif first in "\"'":
            self._skip(STRING_PATTERN)
        else:
            self._skip(PLAIN_VALUE_PATTERN)

    def _array(self, place: Place) -> None:
        self.at += 1
        item = 0
        while self.text[self._skip(BLANK_PATTERN)] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._note((*place, item))
            self._value((*place, item))
            item += 1
        self.at += 1

    def _inline(self, place: Place) -> None:
        self.at += 1
        while self.text[self._skip(BLANK_PATTERN)] != "}":
            if self.text[self.at] == ",":
                self.at += 1
            else:
                self._pair(place)
        self.at += 1


def _unquoted(key: str) -> str:
    """A key without its quotes and escapes."""
    import tomllib

    return next(iter(tomllib.loads(f"{key} = 0"))) if key[:1] in "\"'" else key
