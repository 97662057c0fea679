"""Windows and macOS: nothing outside ground/system.py knows the operating system, and text has a named encoding."""

import ast
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq
from equipoise.ground import system, whole_files
from equipoise.ground.errors import DataError

SOURCE = Path(eq.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
MACHINE = [SOURCE / "ground" / f"{name}.py" for name in ("system", "file_locks", "interrupts")]
MACHINE.append(SOURCE / "ground" / "quiet_panics.py")
"""What knows the system: files and processes, locks, requests to end, and what an engine writes by itself."""
SYSTEM_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "signal", "msvcrt", "winreg", "ctypes"}
SYSTEM_MODULES |= {"shlex", "multiprocessing", "subprocess", "platform", "syslog", "mmap"}
OWN_OF_OS = {"environ", "PathLike", "fspath", "cpu_count"}
"""What of `os` means the same everywhere."""
MODES = {"chmod", "lchmod", "rename", "replace", "symlink_to", "hardlink_to", "owner", "is_mount"}
PLACES = ("/tmp", "/proc", "/sys/", "/dev/", "/etc/", "/var/", "/usr/", "/home/", "~/", "C:\\")
RESERVED = {"con", "prn", "aux", "nul", *(f"{n}{i}" for n in ("com", "lpt") for i in range(1, 10))}


def problems(tree: ast.AST) -> Iterator[str]:
    """Every use of what only one operating system has, and of text in whatever encoding the machine likes."""
    docs = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (f"{line}: import {name}" for name in _imported(node))
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "os" and node.attr not in OWN_OF_OS:
                yield f"{line}: os.{node.attr}"
            if isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("sys", "platform"):
                yield f"{line}: sys.platform"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from (f"{line}: the place {place}" for place in PLACES if node.value.startswith(place))
        elif isinstance(node, ast.Call):
            yield from (f"{line}: {what}" for what in _called(node))


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules of one system, and what of `os` is."""
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        return [f"os.{alias.name}" for alias in node.names if alias.name not in OWN_OF_OS]
    named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return [name for name in named if name.partition(".")[0] in SYSTEM_MODULES]


def _called(node: ast.Call) -> Iterator[str]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = {word.arg for word in node.keywords}
    if isinstance(node.func, ast.Attribute) and name in MODES - {"replace", "rename"}:
        yield f".{name}()"
    if isinstance(node.func, ast.Attribute) and name in ("replace", "rename") and _is_move(node):
        yield f".{name}() of a path"
    if name in ("mkdir", "touch") and "mode" in given:
        yield f".{name}(mode=...)"
    if name in ("read_text", "write_text", "NamedTemporaryFile") and "encoding" not in given:
        yield f".{name}() without encoding"
    if name == "open" and not _binary(node) and "encoding" not in given and not _own_open(node):
        yield "open() of text without encoding"
    if name in ("ProcessPoolExecutor", "fork"):
        yield name


def _is_move(node: ast.Call) -> bool:
    """`path.replace(target)`: one argument, where texts take two, dataclasses keywords and frames a mapping."""
    mapping = isinstance(node.args[0], ast.Dict | ast.DictComp) if node.args else False
    return len(node.args) == 1 and not node.keywords and not mapping and not ast.unparse(node).startswith("pl.")


def _binary(node: ast.Call) -> bool:
    words = [arg.value for arg in [*node.args, *(k.value for k in node.keywords)] if isinstance(arg, ast.Constant)]
    return any(isinstance(word, str) and "b" in word and len(word) <= 3 for word in words)


def _own_open(node: ast.Call) -> bool:
    """Compressed files are opened as bytes unless told; a Format opens a file by itself."""
    return ast.unparse(node.func).startswith(("gzip.", "bz2.", "lzma.", "archive.", "KNOWN["))


def test_only_the_machine_room_knows_the_system() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES if path not in MACHINE}
    found = [f"{path.relative_to(SOURCE).as_posix()}:{what}" for path, tree in trees.items() for what in problems(tree)]
    assert found == []
    assert len(trees) > 200


SHAM = """
import fcntl, os
from multiprocessing import Pool
from os import fork
where = "/tmp/here"
os.rename(a, b)
path.chmod(0o600)
path.replace(target)
path.mkdir(mode=0o700)
path.read_text()
open(path)
sys.platform
"""
FINE = """
'''/tmp is fine in a docstring'''
import os
os.environ
text.replace("a", "b")
replace(roles, keys=())
frame.rename({"a": "b"})
path.open("rb")
open(path, encoding="utf-8")
"""


def test_the_search_finds_each() -> None:
    found = list(problems(ast.parse(SHAM)))
    assert len(found) == 11
    assert list(problems(ast.parse(FINE))) == []


def test_names_of_files_suit_every_system() -> None:
    """No two names that differ in case only, none that Windows reserves or refuses, no path too long."""
    root = Path(__file__).parents[1]
    for top in ("src", "tests", "benchmarks", "docs", "tools"):
        names = [p.relative_to(root).as_posix() for p in (root / top).rglob("*") if "__pycache__" not in p.parts]
        assert len({name.lower() for name in names}) == len(names)
        assert not [name for name in names if set(name) & set('<>:"|?*\\') or name.endswith((".", " "))]
        assert not [name for name in names if {part.partition(".")[0].lower() for part in name.split("/")} & RESERVED]
        assert max(map(len, names), default=0) < 120


# As if on Windows -----------------------------------------------------------------------------------------------------


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The branches of another system; modes must not be touched, and locked files are waited for."""

    def refuse(self: Path, mode: int) -> None:
        raise AssertionError("modes mean nothing there")

    monkeypatch.setattr(system, "WINDOWS", True)
    monkeypatch.setattr(system, "RETRY_PAUSES_SECONDS", (0.0, 0.0))
    monkeypatch.setattr(Path, "chmod", refuse)


@pytest.mark.usefixtures("windows")
def test_a_release_without_modes(people_records: eq.Records, tmp_path: Path) -> None:
    policy = eq.Policy({}, allow=("salary",))
    made = eq.protect(people_records, [eq.masks.Recode("age", 1)], tmp_path / "out", policy=policy)
    assert sorted(p.name for p in made.folder.iterdir()) == ["private", "public"]
    assert (made.private / "seed.json").is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


@pytest.mark.usefixtures("windows")
def test_overwriting_without_modes(people_records: eq.Records, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = eq.Policy({}, allow=("salary",))
    for _ in range(2):
        monkeypatch.setattr(Path, "chmod", lambda self, mode: None)
        eq.protect(people_records, [eq.masks.Recode("age", 1)], tmp_path / "out", policy=policy, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def locked(times: int) -> tuple[list[int], object]:
    """A `Path.replace` that another program holds up so many times."""
    tries: list[int] = []
    real = Path.replace

    def move(self: Path, target: Path) -> Path:
        tries.append(1)
        if len(tries) <= times:
            raise PermissionError(13, "locked", str(self))
        return real(self, target)

    return tries, move


@pytest.mark.usefixtures("windows")
def test_a_locked_file_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries, move = locked(2)
    monkeypatch.setattr(Path, "replace", move)
    whole_files.write_whole(tmp_path / "page.html", "text")
    assert (len(tries), (tmp_path / "page.html").read_text(encoding="utf-8")) == (3, "text")


@pytest.mark.usefixtures("windows")
def test_a_file_that_stays_locked_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "replace", locked(99)[1])
    with pytest.raises(DataError, match="another program has it"):
        whole_files.write_whole(tmp_path / "page.html", "text")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("windows")
def test_memory_and_words_there() -> None:
    assert system.free_memory() > 0
    assert system.shell_word("a.csv") == "a.csv"
    assert system.shell_word("C:\\my files\\a.csv") == '"C:\\my files\\a.csv"'
    assert "only you" in system.privacy()


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX systems")
def test_modes_here(tmp_path: Path) -> None:
    system.make_folder(tmp_path / "closed", private=True)
    system.write(tmp_path / "closed" / "seed", "line\n", private=True)
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "closed" / "seed").stat().st_mode) == 0o600
    assert (tmp_path / "closed" / "seed").read_bytes() == b"line\n"
    with pytest.raises(FileExistsError):
        system.write(tmp_path / "closed" / "seed", "again", private=True)
    assert system.privacy() == ""
    assert system.shell_word("my file") == "'my file'"


# Consoles -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_console_that_is_not_unicode(encoding: str, tmp_path: Path) -> None:
    """Help, screens and errors come out whole, names outside the code page escaped."""
    path = tmp_path / "Ærø Ω.csv"
    pl.DataFrame({"køn": ["f", "m"] * 20, "Ωmega": list(range(40))}).write_csv(path)
    commands = (
        ["assess", "--help"],
        ["roles", str(path)],
        ["assess", str(path), "--keys", "køn,Ωmega"],
        ["assess", "Ω"],
    )
    told = {**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "80", "PYTHONUTF8": "0"}
    script = "import sys; from equipoise.doors.cli import main; [main(c) for c in eval(sys.argv[1])]"
    done = subprocess.run([sys.executable, "-c", script, ascii(commands)], env=told, capture_output=True, check=True)
    out, err = done.stdout.decode(encoding), done.stderr.decode(encoding)
    assert "Reading the data" in out
    assert ("køn" in out) == (encoding != "ascii")
    assert "\\u03a9mega" in out
    assert err.count("equipoise:") == 1
    assert "Traceback" not in err
