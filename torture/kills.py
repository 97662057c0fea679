"""Kill every verb that writes, at any moment, and look at what is left.

A case is one verb in a fresh folder, ended by SIGKILL or SIGTERM at a file operation (by an audit hook) or after a
time, run into a full disk (by a limit on the size of files) or a folder that nobody may write, or run twice at once (the page: beside `balance`). Then: no input changed, what stands under a final name
is whole, the next verb that is given the folder leaves nothing of the dead run, and the same command ends as if nothing
had happened. Children are forked from a process that has imported everything and computed nothing.
"""

import errno
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from torture.walks import KIT, WALKS

WRITING = os.O_WRONLY | os.O_RDWR
TOUCHES = {"os.mkdir", "os.rename", "os.chmod", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}
POLICY = """
format = 1
seed_file = "seed.json"
measures = ["mean_square(columns=('pay',))"]
assume_unknown = ["pay", "weight"]
[data]
path = "people.csv"
[roles]
keys = ["sex", "age"]
numeric = ["pay"]
hierarchies = { age = { kind = "intervals", widths = [5, 10] } }
[limits]
"nearest(variables=('pay', 'age'))" = "< 0.9"
[[candidates]]
masks = [
    { use = "recode", column = "age", level = ["5", "10"] },
    { use = "noise", columns = ["pay"], scale = [0.5, 1.0] },
]
"""
TABLE_POLICY = """
format = 1
seed_file = "seed.json"
[data]
path = "people.csv"
[table]
by = ["sex", "region"]
[limits]
"exposed(rule='min-count:3')" = "<= 0"
[[candidates]]
masks = [{ use = "suppress", rule = "min-count:3" }]
"""
ROLES = ("--keys", "sex,age", "--numeric", "pay")
AGES = ("--hierarchy", "age=intervals:5,10")
DECISION = ("--domain", "region", "--target", "sex", "--weight", "weight", "--risk", "0.2")
MASKS = (*AGES, "--mask", "recode:age,5", "--mask", "noise:pay,0.5")
TABLE = ("--by", "sex,region", "--rule", "min-count:3")


@dataclass(frozen=True)
class Verb:
    """A command that writes `out`; with `again` what it takes when `out` stands already."""

    args: tuple[str, ...]
    out: str
    again: tuple[str, ...] = ("--overwrite",)
    standing: bool = False
    """Whether an earlier run's `out` stands there before."""
    goal: str = ""
    """What stands where the verb has ended, if it is not `out`."""
    beside: tuple[str, ...] = ()
    """The command that is run at once with it, if it is not the same."""


VERBS = {
    "balance": Verb(("balance", "policy.toml", "--out", "out"), "out"),
    "balance over": Verb(("balance", "policy.toml", "--out", "out", "--overwrite"), "out", (), True),
    "balance table": Verb(("balance", "table.toml", "--out", "out"), "out"),
    "balance table over": Verb(("balance", "table.toml", "--out", "out", "--overwrite"), "out", (), True),
    "protect": Verb(("protect", "people.csv", *ROLES, *MASKS, "--out", "out", "--register", "register.json"), "out"),
    "protect over": Verb(
        ("protect", "people.csv", *ROLES, *MASKS, "--out", "out", "--register", "register.json", "--overwrite"),
        "out", (), True,
    ),
    "table": Verb(("table", "people.csv", *TABLE, "--out", "out", "--register", "register.json"), "out"),
    "table over": Verb(("table", "people.csv", *TABLE, "--out", "out", "--overwrite"), "out", (), True),
    "publish": Verb(("publish", "people.csv", *DECISION, "--out", "out"), "out"),
    "coarsen": Verb(("coarsen", "people.csv", "--keys", "sex,age", *AGES, "--k", "2", "--out", "out"), "out"),
    "init": Verb(("init", "people.csv", "--out", "first.toml"), "first.toml"),
    "roles": Verb(("roles", "people.csv", "--out", "roles.toml"), "roles.toml"),
    "attack": Verb(
        ("attack", "released.csv", "--against", "people.csv", "--known", "sex,age", "--out", "page.html"), "page.html"
    ),
    "check": Verb(("check", "policy.toml", "--schema", "schema.json"), "schema.json", ()),
    "demo": Verb(("demo", "--out", "out"), "out", goal="out/release"),
    "demo over": Verb(("demo", "--out", "out", "--overwrite"), "out", (), True, "out/release"),
    "page": Verb(("page",), "out", (), beside=("balance", "policy.toml", "--out", "out", "--overwrite")),
    "page over": Verb(("page",), "out", (), True, beside=("balance", "policy.toml", "--out", "out", "--overwrite")),
}  # fmt: skip


class World:
    """The inputs, and what every verb writes when nobody stops it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.inputs = place / "inputs"
        self.inputs.mkdir()
        _inputs(self.inputs)
        self.operations: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        for name, verb in VERBS.items():
            folder = self.fresh(name, verb)
            run(folder, verb.args, log=folder / "modules")
            for module in (folder / "modules").read_text(encoding="utf-8").split():
                with suppress(Exception):
                    import_module(module)
            shutil.rmtree(folder)

    def fresh(self, name: str, verb: Verb) -> Path:
        """A folder with the inputs and, where the verb replaces something, what stands there before."""
        folder = self.place / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.inputs, folder)
        if verb.standing:
            before = self.place / f"{name} before"
            if not before.exists():
                assert run(folder, verb.args) == 0, name
                shutil.copytree(folder, before)
            shutil.rmtree(folder)
            shutil.copytree(before, folder)
        return folder

    def measure(self, name: str) -> tuple[int, float]:
        """How many file operations a verb has, and how long it takes."""
        if name not in self.operations:
            verb = VERBS[name]
            folder, begun = self.fresh(name, verb), time.monotonic()
            code = run(folder, verb.args, log=folder.parent / "count")
            assert code == 0, (name, code, (folder / "stderr.log").read_text(encoding="utf-8"))
            self.seconds[name] = time.monotonic() - begun
            self.operations[name] = int((folder.parent / "count").read_text(encoding="utf-8").split()[0])
        return self.operations[name], self.seconds[name]


def _inputs(folder: Path) -> None:
    rng = random.Random(3)
    rows = ["sex,age,region,pay,weight"]
    for _ in range(90):
        pay = round(rng.lognormvariate(8, 0.6))
        rows.append(f"{rng.choice('fm')},{rng.randint(20, 59)},{rng.choice('nsew')},{pay},{rng.randint(1, 9)}")
    (folder / "people.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "released.csv").write_text("\n".join(rows[:60]) + "\n", encoding="utf-8")
    (folder / "seed.json").write_text('{"seed": "12345"}', encoding="utf-8")
    (folder / "policy.toml").write_text(POLICY, encoding="utf-8")
    (folder / "table.toml").write_text(TABLE_POLICY, encoding="utf-8")
    (folder / "kit").mkdir()
    (folder / "kit" / "people.toml").write_text(KIT, encoding="utf-8")


def run(
    folder: Path, args: tuple[str, ...], *, at: int = 0, after: float = 0.0, by: int = signal.SIGKILL,
    limit: int = 0, locked: bool = False, log: Path | None = None,
) -> int:  # fmt: skip
    """Run a command in a folder, in a child; the signal comes at a file operation or after a time. The exit code."""
    child = os.fork()
    if child == 0:
        _child(folder, args, at, by, limit, locked, log)
    until = time.monotonic() + (after or 120)
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            os.kill(child, by if after else signal.SIGKILL)
            until = time.monotonic() + 120
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_two(folder: Path, *commands: tuple[str, ...]) -> list[int]:
    """Run commands at once in a folder. The exit codes, the lower one first."""
    children = []
    for args in commands:
        if (child := os.fork()) == 0:
            _child(folder, args, 0, signal.SIGKILL, 0, False, None)
        children.append(child)
    until, codes = time.monotonic() + 120, []
    for child in children:
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.002)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return sorted(codes, key=abs)


def _child(
    folder: Path, args: tuple[str, ...], at: int, by: int, limit: int, locked: bool, log: Path | None
) -> None:  # fmt: skip
    os.chdir(folder)
    for name, number in (("stdout.log", 1), ("stderr.log", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    count, armed = 0, True

    def touched(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if not armed or not (writes or event in TOUCHES):
            return
        count += 1
        if count == at:
            os.kill(os.getpid(), by)
        if locked and isinstance(arguments[0], str | Path) and folder in Path(arguments[0]).absolute().parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), arguments[0])

    sys.addaudithook(touched)
    from equipoise.doors.cli import main

    code = 99
    try:
        code = WALKS[args[0]](list(args[1:])) if args[0] in WALKS else main(list(args))
    finally:
        if code == 99:
            os._exit(code)
    armed = False
    if log is not None:
        log.write_text("\n".join([str(count), *sys.modules]), encoding="utf-8")
    os._exit(code)


def case(world: World, rng: random.Random) -> tuple[str, list[str]]:
    """One kill: its words, and the faults that came to light."""
    name = rng.choice(list(VERBS))
    verb = VERBS[name]
    operations, seconds = world.measure(name)
    how = rng.choice(["kill", "kill", "kill", "term", "time", "full", "locked", "two"])
    how = "kill" if how == "term" and verb.args[0] == "page" else how  # the server has its own way to end
    folder = world.fresh(name, verb)
    before = _contents(folder)
    stood = _marks(folder / verb.out)
    at, after, limit = rng.randint(1, operations), rng.uniform(0, seconds), 2 ** rng.randint(6, 16)
    if how in ("kill", "term"):
        by = signal.SIGKILL if how == "kill" else signal.SIGTERM
        code, words = run(folder, verb.args, at=at, by=by), f"{name}: {by.name} at operation {at} of {operations}"
    elif how == "two":
        code, second = run_two(folder, verb.args, verb.beside or verb.args)
        words = f"{name}: two at once, exit {code} and {second}"
        if code or second not in (0, 2):
            return words, [f"exit {code} and {second}"]
    elif how == "time":
        code, words = run(folder, verb.args, after=after), f"{name}: killed after {after:.2f} of {seconds:.2f} s"
    elif how == "locked":
        code, words = run(folder, verb.args, locked=True), f"{name}: in a folder that nobody may write"
    else:
        code, words = run(folder, verb.args, limit=limit), f"{name}: files of at most {limit} bytes"
    faults = _after(folder, verb, before, stood, code, how)
    faults += _next(world, folder, verb, rng, code)
    return words, faults


def _after(folder: Path, verb: Verb, before: dict[str, bytes], stood: str | None, code: int, how: str) -> list[str]:
    """What is wrong right after the run ended."""
    faults = [f"changed: {name}" for name, was in before.items() if (folder / name).read_bytes() != was]
    text = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace")
    faults += [f"stderr: {text[-300:]}"] if "Traceback" in text or "panicked" in text else []
    out = folder / verb.out
    if stood is not None and not out.exists():
        faults.append("what stood there is gone")
    if out.exists() and not _whole(folder, verb):
        faults.append("what stands there is not whole")
    if how in ("term", "full", "locked"):
        if code not in (0, 2, 130):
            faults.append(f"exit {code}: {text[-300:]}")
        if code != 0 and _marks(out) != stood:
            faults.append(f"exit {code}, though it was written")
        left = [name for name in _hidden(folder) if not name.endswith(".journal")]
        faults += [f"left after exit {code}: {name}" for name in left]
        journals = [name for name in _hidden(folder) if name.endswith(".journal") and verb.args[0] != "page"]
        faults += [f"the message does not name {name}" for name in journals if name not in text]
        if how == "locked" and code != 2:
            faults.append(f"exit {code} where nothing can be written")
        if how != "term" and code == 2 and "'" not in text and verb.args[0] != "page":
            faults.append(f"the message names no path: {text[-200:]}")
    return faults


def _next(world: World, folder: Path, verb: Verb, rng: random.Random, code: int) -> list[str]:
    """What is wrong after the next verb on the folder, and after the same command again."""
    if rng.random() < 0.5:
        above = "." if not verb.goal else verb.out
        run(folder, rng.choice([("verify", verb.out), ("assess", above), ("methods", verb.out), ("roles", above)]))
        left = [name for name in _hidden(folder) if not name.endswith(".journal")]
        if left:
            return [f"left after the next verb: {name}" for name in left]
    stands = (folder / (verb.goal or verb.out)).exists()
    journal = any(name.endswith(".journal") for name in _hidden(folder))
    more = verb.again if stands and not journal and "--overwrite" not in verb.args else ()
    again = run(folder, (*verb.args, *more))
    text = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace")
    faults = [f"again: exit {again}: {text[-300:]}"] if again else []
    if not again and not _whole(folder, verb):
        faults.append("again: not whole")
    faults += [f"left after the same command: {name}" for name in _hidden(folder)]
    shelf = folder / "register.json.tables"
    if shelf.exists():
        named = (folder / "register.json").read_text(encoding="utf-8")
        faults += [
            f"not in the register: {one.name}" for one in shelf.iterdir() if one.name.partition("-")[0] not in named
        ]
    if "policy.toml" in verb.args and verb.out == "out" and not faults:
        expected = world.place / "expected"
        mark = _data(folder)
        if not expected.exists():
            expected.write_text(mark, encoding="utf-8")
        elif expected.read_text(encoding="utf-8") != mark:
            faults.append("another release than that of an uninterrupted run")
    return faults


def _whole(folder: Path, verb: Verb) -> bool:
    """Whether what stands there is complete: a release that verifies, or a file that parses."""
    out = folder / verb.out
    if verb.args[0] == "publish":
        return sorted(p.name for p in out.iterdir()) == ["decision.csv", "decision.json", "report.html"]
    if verb.args[0] == "demo":
        names = ("people.parquet", "people-roles.toml", "people.toml")
        return all((out / name).is_file() for name in names) and _verified(folder, "out/release")
    if out.is_dir():
        return _verified(folder, verb.out)
    text = out.read_text(encoding="utf-8")
    if out.suffix == ".json":
        json.loads(text)
    return text.rstrip().endswith("</html>") if out.suffix == ".html" else len(text) > 100


def _verified(folder: Path, release: str) -> bool:
    """Whether a release is whole; one that is not there is no part of one."""
    if not (folder / release).exists():
        return True
    keep = (folder / "stderr.log").read_bytes(), (folder / "stdout.log").read_bytes()
    code = run(folder, ("verify", release))
    (folder / "stderr.log").write_bytes(keep[0])
    (folder / "stdout.log").write_bytes(keep[1])
    return code == 0


def _data(folder: Path) -> str:
    files = sorted((folder / "out" / "public").glob("data.*"))
    return "".join(str(hash(file.read_bytes())) for file in files)


def _marks(out: Path) -> str | None:
    """What tells two states of an output apart, but for a journal in it; None where there is none."""
    if not out.exists():
        return None
    files = [out] if out.is_file() else sorted(path for path in out.rglob("[!.]*") if path.is_file())
    return "".join(f"{file.name}{hash(file.read_bytes())}" for file in files)


def _contents(folder: Path) -> dict[str, bytes]:
    names = ("people.csv", "released.csv", "seed.json", "policy.toml", "table.toml")
    return {name: (folder / name).read_bytes() for name in names}


def _hidden(folder: Path) -> list[str]:
    """What is hidden in the folder, below it too; the page has a hidden folder of its own."""
    return sorted(path.name for path in folder.rglob(".*") if path.name != ".equipoise")


def cases(seed: str, place: Path, numbers: range) -> Iterator[tuple[int, str, list[str]]]:
    """The kills with these numbers, each from its own stream of the seed."""
    world = World(place)
    for number in numbers:
        words, faults = case(world, random.Random(f"{seed} kill {number}"))
        yield number, words, faults
