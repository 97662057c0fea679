"""Files and folders written whole or not at all, never over an existing one unasked, by one run at a time.

A run that writes NAME holds the lock `.NAME.equipoise-lock` beside it and fills a stage, `.NAME.TOKEN.partial`, which
takes the name in one step once it is whole and on disk. A stage is only made under the lock: whoever can take the lock
knows that the stages beside NAME are of runs that are dead, however they ended, and clears them. Where a system cannot
exchange two names in one step, the stage becomes `.ready`, what stood there `.old`, and whoever next takes the lock
ends what was begun.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import get_ident

from equipoise.ground import file_locks, system
from equipoise.ground.errors import DataError, of_engine
from equipoise.ground.interrupts import uninterrupted

LOCK_SUFFIX = ".equipoise-lock"
STAGE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.(?:partial|ready|old)", re.DOTALL)
"""What a run that is under way, or a dead one, has beside the target NAME."""
WORKBENCH_FOLDERS = (".equipoise", ".equipoise/runs", "uploads")
"""Folders that the page has in its working folder: what dead runs left in them is cleared with the others."""
EVIDENCE = "public/evidence.json"
"""The file by which a folder is known to be a release."""
POLL_SECONDS = 0.05
_held: set[tuple[Path, int]] = set()
"""The targets that this process holds, and in which thread."""
_watchers: list[list[Path]] = []
"""Those who want to know which folders are put in place."""


def refuse_page(
    place: Path, overwrite: bool, what: str = "page", like: str = "report.html", *, reads: Iterable[object] = ()
) -> None:
    """Refuse a folder, a file that may not be overwritten, one of a release, and one of those that the run `reads`."""
    if place.is_dir():
        raise DataError(f"{str(place)!r} is a folder: name the {what} to write, such as {like}.")
    if place.exists() and not overwrite:
        raise DataError(f"The file {str(place)!r} exists already: name another, or ask to overwrite it.")
    if any(_is_same_file(source, place) for source in reads):
        raise DataError(f"{str(place)!r} is what is read: name another {what} to write.")
    if place.exists() and any((folder.parent / EVIDENCE).exists() for folder in place.resolve().parents):
        raise DataError(f"{str(place)!r} is a file of a release: name another {what} to write.")
    _refuse_way_back(place, system.without_links(place))


def _refuse_way_back(target: Path, place: Path) -> None:
    """Refuse a path through a missing folder to something that stands, which nobody asked to replace."""
    if ".." in target.parts and place.exists() and not target.exists():
        raise DataError(f"{str(target)!r} goes back from a folder that does not exist: name it without '..'.")


def _is_same_file(source: object, place: Path) -> bool:
    try:
        return isinstance(source, str | Path) and place.samefile(source)
    except (OSError, ValueError):
        return False


def refuse_inside(place: Path, folder: Path) -> None:
    """A page in a folder that may not come to be would make it."""
    if system.without_links(folder) in system.without_links(place).parents:
        raise DataError(f"The page {str(place)!r} would stand in the release folder: put it beside that.")


def write_whole(place: Path, text: str, *, private: bool = True, goal: bool = False) -> None:
    """Write a text file; a private one is for its owner only. `goal` is whether the run is there to write it."""
    with staged_file(place, goal=goal) as stage:
        system.write(stage, text, private=private)


@contextmanager
def staged_file(place: Path, *, goal: bool = False) -> Iterator[Path]:
    """Where to write a file, which then takes its place in one step."""
    with held(place, wait=True) as target, _stage(target) as stage:
        yield stage
        with uninterrupted():
            system.sync(stage)
            system.move(stage, target)
            system.sync(target.parent)
            _tell(place if goal else None)


@contextmanager
def staged_with_companions(place: Path) -> Iterator[Path]:
    """Where to write a file, in a folder of its own; what else is in it then is put beside the file, before it."""
    with held(place, wait=True) as target, _stage(target) as stage:
        system.make_folder(stage, private=False)
        yield stage / target.name
        with uninterrupted():
            system.sync_all(stage)
            for file in sorted(stage.iterdir(), key=lambda file: file.name == target.name):
                system.move(file, target.parent / file.name)
            system.sync(target.parent)


@contextmanager
def staged(
    folder: Path, overwrite: bool, *, refuse: Callable[[Path, bool], None], private: bool = False, goal: bool = True
) -> Iterator[Path]:
    """A folder beside the target that takes its place in one step when everything in it is written.

    `refuse` says whether the target may be replaced; a `private` one is for its owner only. `goal` is whether the run
    is there to write it.
    """
    with held(folder) as target, _stage(target) as stage:
        system.make_folder(stage, private=True)
        yield stage
        refuse(folder, overwrite)
        with uninterrupted():
            system.restrict(stage, private=private)
            system.sync_all(stage)
            _put(stage, target)
            _tell(folder if goal else None)


@contextmanager
def held(target: Path, *, wait: bool = False) -> Iterator[Path]:
    """Nobody else writes this target meanwhile, and what dead runs left of it is gone. Gives its path without links.

    Where another run has it, this waits, or says so. Parents that do not exist are made, and are gone if they stay
    empty. Where a drive has no locks, nobody is kept out and nothing is cleared.
    """
    place, lock = system.stored(system.without_links(target)), None
    if (place, get_ident()) in _held:
        yield place
        return
    if not place.name:
        raise DataError(f"{str(target)!r} cannot be written: name a folder, or a file, in it.")
    if not system.is_text(place):
        raise DataError(
            f"{str(target)!r} has a name that is not text in UTF-8, where engines cannot write: name another."
        )
    if place.is_symlink():
        raise DataError(f"{str(target)!r} is a link that leads in a circle: name another place.")
    _refuse_way_back(target, place)
    fresh = [parent for parent in place.parents if not parent.exists()]
    try:
        with _naming(target, _lock(place)):
            place.parent.mkdir(parents=True, exist_ok=True)
            while lock is None:
                with uninterrupted():
                    lock = file_locks.take_lock(_lock(place))
                if lock is None and not wait:
                    raise DataError(
                        f"Another run{file_locks.lock_owner(_lock(place))} is writing {str(target)!r}: wait until it "
                        "ends, or name another place."
                    )
                time.sleep(0 if lock else POLL_SECONDS)
            if lock.works:
                _settle(place)
        _held.add((place, get_ident()))
        yield place
    finally:
        with uninterrupted():
            if lock is not None:
                _held.discard((place, get_ident()))
                lock.release()
            for parent in fresh:
                with suppress(OSError):
                    parent.rmdir()


@contextmanager
def watching() -> Iterator[list[Path]]:
    """The folders, and the files that runs are there to write, that are put in place while this lasts."""
    places: list[Path] = []
    _watchers.append(places)
    try:
        yield places
    finally:
        _watchers[:] = [one for one in _watchers if one is not places]


def _tell(place: Path | None) -> None:
    for places in _watchers:
        places += [place] if place is not None else []


def clear_dead(path: Path) -> list[Path]:
    """Clear what dead runs left of this target, of those beside it and, where it is a folder, of those in it.

    Gives what may be left of a dead run on a drive without locks: nothing tells, and it stays.
    """
    doubtful = []
    for target in _begun(path):
        with suppress(OSError):
            if (lock := file_locks.take_lock(_lock(target))) is not None:
                try:
                    if lock.works:
                        _settle(target)
                    else:
                        doubtful += _stages(target)
                finally:
                    lock.release(remove=lock.works)
    return doubtful


def _begun(path: Path) -> list[Path]:
    """The targets that are locked, by runs that live or are dead; none where the path is no path.

    A path that is not there yet has a folder above it: what the page had begun in that is looked at too.
    """
    with suppress(OSError, ValueError, RuntimeError):
        place = system.without_links(path)
        near = [place.parent, place] if place.is_dir() else [place.parent]
        inside = [folder for one in near for name in WORKBENCH_FOLDERS if (folder := one / name).is_dir()]
        folders = [*near, *inside]
        locks = [entry for folder in folders for entry in folder.iterdir() if entry.name.endswith(LOCK_SUFFIX)]
        return [lock.with_name(lock.name[1:].removesuffix(LOCK_SUFFIX)) for lock in locks]
    return []


def _stages(target: Path) -> list[Path]:
    """The stages beside a target."""
    matches = [STAGE.fullmatch(entry.name) for entry in target.parent.iterdir()]
    return sorted(target.with_name(match[0]) for match in matches if match and match["name"] == target.name)


def _settle(target: Path) -> None:
    """End what dead runs have begun of a target: a whole stage takes its place, where what stood there is gone."""
    stages = _stages(target)
    for suffix in (".ready", ".old"):
        for whole in (path for path in stages if path.suffix == suffix):
            if not target.exists():
                system.move(whole, target)
    for stage in stages:
        _remove(stage)


def _put(stage: Path, target: Path) -> None:
    """Give a stage, which is whole, the name of its target; what stood there is in the stage's place afterwards."""
    if not target.exists():
        system.move(stage, target)
    elif system.exchange(stage, target):
        system.restrict(stage)
    else:
        ready, old = stage.with_suffix(".ready"), stage.with_suffix(".old")
        system.move(stage, ready)
        system.move(target, old)
        try:
            system.move(ready, target)
        except BaseException:
            system.move(old, target)
            system.remove_folder(ready)
            raise
        system.move(old, stage)
    system.sync(target.parent)


def new_stage(target: Path) -> Path:
    """A path for a new stage; whoever holds the target may fill it."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")


@contextmanager
def _stage(target: Path) -> Iterator[Path]:
    """The path of a new stage, of which nothing is left afterwards."""
    stage = new_stage(target)
    try:
        with _naming(target, stage):
            yield stage
    finally:
        with uninterrupted():
            _remove(stage)


def _remove(stage: Path) -> None:
    if stage.is_dir() and not stage.is_symlink():
        system.remove_folder(stage)
    else:
        stage.unlink(missing_ok=True)


def _lock(target: Path) -> Path:
    return target.with_name(f".{target.name}{LOCK_SUFFIX}")


@contextmanager
def _naming(place: Path, hidden: Path) -> Iterator[None]:
    """Let an error of the disk, also one that an engine tells, name a path that the user knows: no lock, no stage."""
    try:
        yield
    except Exception as error:
        if not (isinstance(error, OSError) or of_engine(error)):
            raise
        number, words = system.disk_error(error)
        if not words or not str(getattr(error, "filename", None) or hidden).startswith(str(hidden)):
            raise
        raise OSError(number, words, str(place)) from None
