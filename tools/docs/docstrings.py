"""Docstrings as Markdown: prose with its formulas, lists, parameters, what stands after a label, and examples."""

import re
from collections.abc import Callable

LABELS = ("Source:", "Assumption:", "Misleads when", "Does not guard against", "Cost:")
SIGNS = {
    "&": "&amp;", "<-": "←", "->": "→", "+-": "±", "<=": "≤", ">=": "≥", "<": "&lt;", ">": "&gt;", "|": "&#124;",
}  # fmt: skip
INDEX = re.compile(r"(?<![A-Za-z])([A-Za-z]|pi|mu|sum)\\_(?:\(([^()]*)\)|(\w{1,3})(?!\w|\\_))")
"""A letter with an index, its underscore escaped: m_i, R_(n+1)."""
Link = Callable[[str], str | None]
"""Where a name in backticks is described, None where it is nowhere."""


def page_part(doc: str, link: Link) -> str:
    """A docstring as Markdown: what it says, then what is labelled, then its examples."""
    said, told, examples = [], dict.fromkeys(LABELS, ""), []
    for chunk in _chunks(doc):
        if chunk.startswith(">>>"):
            examples.append(f"```pycon\n{chunk}\n```")
        elif re.match(r"\w+\n-{3,}\n", chunk):
            said.append(_section(chunk, link))
        elif chunk.startswith("- "):
            said.append("\n".join(f"- {prose(item, link)}" for item in _items(chunk)))
        elif chunk.startswith("    "):
            said.append(chunk)
        else:
            plain, *labelled = re.split(f"({'|'.join(LABELS)})", " ".join(chunk.split()))
            said.append(_first_safe(prose(plain.strip(), link)))
            for label, text in zip(labelled[::2], labelled[1::2], strict=True):
                told[label] += f" {text.strip()}"
    facts = [f"{label.rstrip(':')}\n:   {prose(text.strip(), link)}" for label, text in told.items() if text]
    return "\n\n".join(filter(None, [*said, *facts, *examples]))


def source(doc: str) -> str:
    """What a docstring names as its source."""
    found = re.search(rf"Source:(.*?)(?:{'|'.join(LABELS)}|\n\s*\n|$)", doc, re.DOTALL)
    return " ".join(found[1].split()) if found else ""


def summary(doc: str) -> str:
    """The first paragraph of a docstring."""
    return " ".join(doc.strip().split("\n\n")[0].split())


def prose(text: str, link: Link) -> str:
    """Plain text as Markdown: nothing in it is markup but backticks and *titles*; powers and indices are set."""
    parts = text.split("`")
    return "".join(_code(part, link) if place % 2 else _words(part) for place, part in enumerate(parts))


def _code(text: str, link: Link) -> str:
    target = link(re.sub(r"\(.*", "", text))
    return f"[`{text}`]({target})" if target else f"`{text}`"


def _words(text: str) -> str:
    parts = re.split(r"\*(\w[^*]*?[\w?!.)])\*", text)
    return "".join(f"*{_plain(part)}*" if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    for sign, shown in SIGNS.items():
        text = text.replace(sign, shown)
    text = re.sub(r"([\\*_\[\]#])", r"\\\1", text)
    text = INDEX.sub(r"\1<sub>\2\3</sub>", text)
    return re.sub(r"\^(?:\(([^()]*)\)|(-?\w+))", r"<sup>\1\2</sup>", text)


def _first_safe(text: str) -> str:
    """A paragraph that Markdown does not take for a list or a number."""
    return re.sub(r"^(\d+)\.", r"\1\\.", re.sub(r"^([+-]) ", r"\\\1 ", text))


def _chunks(doc: str) -> list[str]:
    """Paragraphs, lists, sections and examples, apart."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", doc.strip("\n")):
        whole = block.startswith(">>>") or re.match(r"\w+\n-{3,}", block)
        found += [block] if whole else _with_lists(block.split("\n"))
    return found


def _with_lists(lines: list[str]) -> list[str]:
    """Lines of a block, lists apart from paragraphs."""
    pieces: list[list[str]] = []
    for line in lines:
        item, listed = line.startswith("- "), bool(pieces) and pieces[-1][0].startswith("- ")
        if pieces and (item == listed or (listed and line.startswith("  "))):
            pieces[-1].append(line)
        else:
            pieces.append([line])
    return ["\n".join(piece) for piece in pieces]


def _items(chunk: str) -> list[str]:
    return [" ".join(item.split()) for item in re.split(r"(?:^|\n)- ", chunk)[1:]]


def _section(chunk: str, link: Link) -> str:
    """A section of parameters: each name with what it says."""
    lines = chunk.split("\n")[2:]
    names = [place for place, line in enumerate(lines) if line and not line.startswith(" ")]
    ends = [*names[1:], len(lines)]
    told = [(lines[a], " ".join(" ".join(lines[a + 1 : b]).split())) for a, b in zip(names, ends, strict=True)]
    return "\n\n".join(f"`{name}`\n:   {prose(text, link)}" for name, text in told)
