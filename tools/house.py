"""Measure the architecture of the source tree: `python tools/house.py` prints it, and what breaks its limits.

What import-linter cannot say: how long the longest chain of imports is, how full the folders are, which class names and
filler names there are, and which modules stand in another room than their only user.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "equipoise"
FAMILIES = ("attacks", "losses", "masks", "risk", "rules", "tables", "theory", "utility")
METHODS = ("attacks", "masks", "risk", "rules", "tables", "utility")
"""Families in which every public file is one method, which knows none of its siblings."""
FILLERS = {
    *("asked", "counted", "done", "drawn", "found", "given", "gone", "held", "here", "kept", "known", "left", "lost"),
    *("made", "meant", "moved", "named", "put", "said", "seen", "shown", "taken", "there", "told", "tried", "wanted"),
    "written",
}
"""Words that say nothing of the thing they name."""
FRONT_DOOR = set(re.findall(r"from equipoise\.(\S+) import", (SOURCE / "__init__.py").read_text("utf-8")))
"""Modules that the names of `import equipoise as eq` are in."""
MAX_CHAIN = 20
MAX_FILES = 25
MAX_FILLER_FUNCTIONS = 200
MAX_LINES = 88_000
"""It had 61,136 when the rooms were in order; the views of stronger intruders came since. A rise is a decision."""


@dataclass(frozen=True)
class Module:
    """A module of the tree: its dotted name below the package, its syntax tree, and whether it is a package."""

    name: str
    path: Path
    tree: ast.Module
    lines: int
    package: bool

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    @property
    def private(self) -> bool:
        return any(part.startswith("_") for part in self.name.split("."))


@dataclass(frozen=True)
class House:
    """All modules by name, and for each the modules it imports when it is imported itself."""

    modules: dict[str, Module]
    imports: dict[str, frozenset[str]]
    importers: dict[str, frozenset[str]] = field(default_factory=dict)

    def chain(self) -> list[str]:
        """The longest chain of imports, from the door down."""

        @cache
        def longest(name: str) -> tuple[str, ...]:
            below = (longest(other) for other in sorted(self.imports[name]))
            return (name, *max(below, key=len, default=()))

        return list(max((longest(name) for name in sorted(self.modules)), key=len))

    def full_folders(self) -> dict[str, int]:
        """Folders with more files than a newcomer takes in; public files of a family, one per method, do not count."""
        counts: dict[str, int] = defaultdict(int)
        for module in self.modules.values():
            folder = module.path.parent
            in_family = folder.parent == SOURCE and folder.name in FAMILIES
            counts[str(folder.relative_to(SOURCE))] += not in_family or module.path.stem.startswith("_")
        return {folder: count for folder, count in counts.items() if count > MAX_FILES}

    def repeated_classes(self) -> dict[str, list[str]]:
        """Class names that stand twice; public methods of different families may share theirs."""
        places: dict[str, list[Module]] = defaultdict(list)
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(module)
        return {
            name: [module.name for module in modules]
            for name, modules in sorted(places.items())
            if len(modules) > 1 and not _methods_of_different_families(name, modules, self)
        }

    def exported(self, family: str) -> frozenset[str]:
        """The public names of a family."""
        imports = (node for node in ast.walk(self.modules[family].tree) if isinstance(node, ast.alias))
        return frozenset(one.name for one in imports if one.asname == one.name)

    def filler_functions(self) -> list[str]:
        """Functions that are called, or call something, by a filler word."""
        return [
            f"{module.name}.{node.name}"
            for module in self.modules.values()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _names(node) & FILLERS
        ]

    def misplaced(self) -> dict[str, str]:
        """Modules that no user reaches by name, with one importer only, which stands in another room."""
        users = {
            name: [user for user in self.importers[name] if not self.modules[user].package]
            for name, module in self.modules.items()
            if not module.package and not self._public(module)
        }
        return {
            name: using[0]
            for name, using in users.items()
            if len(using) == 1 and self.modules[using[0]].room != self.modules[name].room
        }

    def _public(self, module: Module) -> bool:
        """Whether users reach a module by name: a method of a family, or what the front door or its package lists."""
        package = module.name.rpartition(".")[0]
        in_family = package in FAMILIES and not module.private
        listed = package and f"from equipoise.{module.name} import" in self.modules[package].path.read_text("utf-8")
        return in_family or bool(listed) or module.name in FRONT_DOOR or package in self.importers[module.name]

    def intrusions(self) -> list[str]:
        """Imports of a private module by another room, and of one public method file by its sibling."""
        return [
            f"{user} -> {name}"
            for user, names in self.imports.items()
            for name in names
            if _forbidden(self.modules[user], self.modules[name])
        ]

    @property
    def lines(self) -> int:
        return sum(module.lines for module in self.modules.values())


def _methods_of_different_families(name: str, modules: list[Module], house: House) -> bool:
    rooms = [module.room for module in modules]
    return len(set(rooms)) == len(rooms) and all(r in FAMILIES and name in house.exported(r) for r in rooms)


def _names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    names = {function.name.strip("_")}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def _forbidden(user: Module, other: Module) -> bool:
    if other.private and user.room != other.room:
        return True
    files = user.path.parent == other.path.parent == SOURCE / user.room and not user.package
    return files and user.room in METHODS and not (user.private or other.private)


def read_house(source: Path = SOURCE) -> House:
    """Read the tree of modules and what each imports; imports for type checkers alone do not count."""
    modules = {module.name: module for module in map(_module, sorted(source.rglob("*.py"))) if module.name}
    imports = {
        name: frozenset(n for n in _imported(module, frozenset(modules)) if n != name)
        for name, module in modules.items()
    }
    importers: dict[str, set[str]] = {name: set() for name in modules}
    for name, others in imports.items():
        for other in others:
            importers[other].add(name)
    return House(modules, imports, {name: frozenset(users) for name, users in importers.items()})


def _module(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(SOURCE).with_suffix("").parts
    package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if package else parts)
    return Module(name, path, ast.parse(text), text.count("\n"), package)


def _imported(module: Module, known: frozenset[str]) -> Iterator[str]:
    for node in _running(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "equipoise":
            base = node.module.removeprefix("equipoise").removeprefix(".")
            for alias in node.names:
                inner = (f"{base}.{name}".removeprefix(".") for name in (alias.name, _snake(alias.name)))
                yield from islice((name for name in (*inner, base) if name in known), 1)
        elif isinstance(node, ast.Import):
            yield from (n for n in (a.name.removeprefix("equipoise.") for a in node.names) if n in known)


def _snake(name: str) -> str:
    """The module that a lazy package finds a class in: its name in snake case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs when the module is imported: not functions, nor what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield child
        yield from _running(child)


def problems(house: House) -> list[str]:
    """What breaks a limit, a line each."""
    chain, fillers = house.chain(), house.filler_functions()
    return [
        *([f"The longest chain of imports has {len(chain)} modules."] if len(chain) > MAX_CHAIN else []),
        *(f"{folder}/ has {count} files." for folder, count in house.full_folders().items()),
        *(f"Class {name} stands in {', '.join(places)}." for name, places in house.repeated_classes().items()),
        *([f"{len(fillers)} functions use a filler word."] if len(fillers) >= MAX_FILLER_FUNCTIONS else []),
        *(f"{name} is used by {user} alone, in another room." for name, user in house.misplaced().items()),
        *(f"{line}: not allowed." for line in house.intrusions()),
        *([f"The source tree has {house.lines:,} lines."] if house.lines > MAX_LINES else []),
    ]


def main() -> int:
    house = read_house()
    chain = house.chain()
    print(f"modules                    {len(house.modules):,}")
    print(f"lines                      {house.lines:,}")
    print(f"longest chain of imports   {len(chain)}: {' > '.join(chain)}")
    print(f"functions with fillers     {len(house.filler_functions()):,}")
    broken = problems(house)
    print(*(broken or ["house: every limit holds"]), sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
