"""tau-ARGUS metadata (.rda): one variable after the other, each with its place and tags."""

import re
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from equipoise.ground.errors import DataError

WORD_PATTERN = re.compile(r'"([^"]*)"|(\S+)')
TAG_PATTERN = re.compile(r"<([A-Z_]+)>([^<]*)")
TABLE_PARTS = {
    "FREQUENCY": "frequency",
    "SHADOW": "shadow",
    "COST": "cost",
    "COSTVAR": "cost",
    "MAXSCORE": "largest",
    "STATUS": "status",
    "LOWERPL": "lower",
    "UPPERPL": "upper",
}
"""What the tags of a table call the variables that are not its value."""
STATUSES = {"SAFE": "s", "UNSAFE": "u", "PROTECT": "z"}


@dataclass(frozen=True)
class ArgusVariable:
    """One variable: where it stands (`start` from 1, 0 in separated files), and what its tags say.

    In a table `part` is what the variable tells of a cell, and `total` the code of the total; `overlapping` are files
    of further groups that are no parts of the first, a repeated HIERCODELIST, which only we write.
    """

    name: str
    start: int = 0
    width: int = 0
    missing: tuple[str, ...] = ()
    numeric: bool = False
    weight: bool = False
    recodeable: bool = False
    decimals: int = 0
    codelist: str | None = None
    hierarchy: str | None = None
    lead: str = "@"
    digits: tuple[int, ...] = ()
    part: str | None = None
    total: str | None = None
    overlapping: tuple[str, ...] = ()

    @property
    def number(self) -> bool:
        return self.numeric or self.weight


@dataclass(frozen=True)
class ArgusMetadata:
    """A metadata file: its variables, the separator of the data if it has one, and the letters of its statuses."""

    path: Path
    variables: tuple[ArgusVariable, ...]
    separator: str | None = None
    letters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, path: Path) -> "ArgusMetadata":
        if not path.is_file():
            raise DataError(f"No metadata file at {str(path)!r}.")
        separator: str | None = None
        variables: list[ArgusVariable] = []
        letters: dict[str, str] = {}
        for line in text_of(path).splitlines():
            tags = TAG_PATTERN.findall(line)
            letters |= {_words(rest)[0]: STATUSES[tag] for tag, rest in tags if tag in STATUSES and _words(rest)}
            if tags and not variables:
                separator = next((_words(rest)[0] for tag, rest in tags if tag == "SEPARATOR"), separator)
            elif tags:
                variables[-1] = _with_tags(variables[-1], tags)
            elif words := WORD_PATTERN.findall(line):
                variables.append(_variable(words, separator, path))
        if not variables or len({v.name for v in variables}) < len(variables):
            raise DataError(f"{str(path)!r} names no variables, or one of them twice: it is not tau-ARGUS metadata.")
        return cls(path, tuple(variables), separator, tuple(letters.items()))

    def beside(self, file_name: str) -> Path:
        """A file the metadata names, looked for by its name in the metadata's own folder."""
        name = PureWindowsPath(file_name).name
        near = {p.name.lower(): p for p in self.path.parent.iterdir()}
        if name.lower() not in near:
            raise DataError(f"{str(self.path)!r} names the file {name!r}, which is not beside it.")
        return near[name.lower()]

    def codes(self, variable: ArgusVariable) -> tuple[tuple[Any, str], ...]:
        """The labels of a code list: code, text in each line."""
        if not variable.codelist:
            return ()
        lines = text_of(self.beside(variable.codelist)).splitlines()
        pairs = [line.partition(",") for line in lines if line.strip()]
        return tuple((code.strip(), text.strip()) for code, _, text in pairs)


def text_of(path: Path) -> str:
    """A text file in UTF-8, else Windows-1252."""
    data = path.read_bytes()
    if b"\x00" in data[: 1 << 16] or data[:2] in (b"\x1f\x8b", b"BZ"):
        raise DataError(f"{str(path)!r} is not a text file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _words(text: str) -> list[str]:
    return [quoted or plain for quoted, plain in WORD_PATTERN.findall(text)]


def _variable(tokens: list[tuple[str, str]], separator: str | None, path: Path) -> ArgusVariable:
    """name, start, width, missing codes; without the start where a separator rules. What is quoted is no place."""
    words = [quoted or plain for quoted, plain in tokens]
    numbers = [plain for _, plain in tokens[1 : 2 if separator else 3] if plain]
    if not all(word.isdecimal() for word in numbers) or (not separator and len(numbers) < 2):
        raise DataError(f"{str(path)!r} is not tau-ARGUS metadata: a variable has no place.")
    start, width = (0, int(numbers[0]) if numbers else 0) if separator else (int(numbers[0]), int(numbers[1]))
    return ArgusVariable(words[0], start, width, tuple(words[1 + len(numbers) :]))


def _with_tags(variable: ArgusVariable, tags: list[tuple[str, str]]) -> ArgusVariable:
    for tag, rest in tags:
        words = _words(rest)
        fields: dict[str, dict[str, Any]] = {
            "NUMERIC": {"numeric": True},
            "WEIGHT": {"weight": True},
            "RECODEABLE": {"recodeable": True},
            **{tag: {"part": part} for tag, part in TABLE_PARTS.items()},
        }
        if words:
            fields |= {
                "CODELIST": {"codelist": words[0]},
                "HIERCODELIST": {"hierarchy": words[0]}
                if variable.hierarchy is None
                else {"overlapping": (*variable.overlapping, words[0])},
                "HIERLEADSTRING": {"lead": words[0]},
                "TOTCODE": {"total": words[0]},
            }
        if words and all(word.isdecimal() for word in words):
            fields |= {"DECIMALS": {"decimals": int(words[0])}, "HIERLEVELS": {"digits": tuple(map(int, words))}}
        variable = replace(variable, **fields.get(tag, {}))
    return variable
