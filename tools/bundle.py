"""A folder with everything an installation without a network needs: wheels, their hashes, and how to install them.

    python tools/bundle.py --out dist/bundle [--extras files,duckdb] [--platform windows --python-version 3.12]

The wheel of this project is built (or given by --wheel); the wheels of what it depends on come from wherever pip is
told to look. Dependencies are those of the machine that will install them, not of this one. Versions are those of
constraints.txt. Nothing in the folder says where the wheels came from. Needs pip, build, hatchling and packaging.
"""

import argparse
import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("all", "spark")
"""Extras that are not in a bundle unless named: Spark alone is larger than everything else together."""
MANYLINUX = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_24", "manylinux_2_17", "manylinux2014",
             "manylinux_2_12", "manylinux2010", "manylinux_2_5", "manylinux1")  # fmt: skip
PLATFORMS = {
    "windows": ("win_amd64",),
    "macos": ("macosx_14_0_arm64", "macosx_14_0_universal2"),
    "macos-intel": ("macosx_14_0_x86_64", "macosx_14_0_universal2"),
    "linux": tuple(f"{name}_x86_64" for name in MANYLINUX),
    "linux-arm": tuple(f"{name}_aarch64" for name in MANYLINUX if "_2_" in name or name == "manylinux2014"),
}
"""The machines by name, as tags of wheels; any other tag is taken as it is."""


@dataclass(frozen=True)
class Target:
    """The machine that will install: this one, or tags of wheels and a version of Python."""

    tags: tuple[str, ...] = ()
    python: str = platform.python_version()

    def options(self) -> list[str]:
        """What pip has to be told to fetch for another machine."""
        told = ["--only-binary", ":all:"]
        if self.tags:
            told += [word for tag in self.tags for word in ("--platform", tag)]
            told += ["--python-version", self.python, "--implementation", "cp"]
        return told

    def environment(self) -> dict[str, str] | None:
        """What the conditions of dependencies are judged by; None: this machine."""
        if not self.tags:
            return None
        system, name, posix = {"w": ("win32", "Windows", "nt"), "m": ("darwin", "Darwin", "posix")}.get(
            self.tags[0][0] if self.tags[0].startswith(("win", "macosx")) else "", ("linux", "Linux", "posix")
        )
        short = _short(self)
        full = self.python if self.python.count(".") > 1 else f"{short}.0"
        return {
            "sys_platform": system, "platform_system": name, "os_name": posix,
            "platform_machine": _machine(self.tags[0]),
            "python_version": short, "python_full_version": full, "implementation_name": "cpython",
            "platform_python_implementation": "CPython", "implementation_version": full, "platform_release": "",
            "platform_version": "",
        }  # fmt: skip


def _machine(tag: str) -> str:
    known = {"amd64": "AMD64", "arm64": "arm64", "aarch64": "aarch64", "universal2": "arm64", "win32": "x86"}
    return next((name for ending, name in known.items() if tag.endswith(ending)), "x86_64")


@dataclass(frozen=True)
class Wheel:
    """A wheel in the folder."""

    path: Path

    @property
    def name(self) -> NormalizedName:
        return parse_wheel_filename(self.path.name)[0]

    @property
    def version(self) -> Version:
        return parse_wheel_filename(self.path.name)[1]

    def glibc(self) -> tuple[int, int]:
        """The C library it needs, (0, 0) when none."""
        tags = [tag.platform.split("_") for tag in parse_wheel_filename(self.path.name)[3]]
        return min(((int(t[1]), int(t[2])) for t in tags if t[0] == "manylinux"), default=(0, 0))

    def requires(self) -> list[Requirement]:
        """Its dependencies, each with the condition under which it is one."""
        with zipfile.ZipFile(self.path) as archive:
            (metadata,) = (n for n in archive.namelist() if n.count("/") == 1 and n.endswith(".dist-info/METADATA"))
            told = HeaderParser().parsestr(archive.read(metadata).decode("utf-8"))
        return [Requirement(text) for text in told.get_all("Requires-Dist") or ()]

    def needs(self, extras: Iterable[str], environment: Mapping[str, str] | None) -> list[Requirement]:
        """Those that hold for a machine and some extras."""
        asked = ["", *extras]
        return [r for r in self.requires() if not r.marker or any(_holds(r, extra, environment) for extra in asked)]


def _holds(requirement: Requirement, extra: str, environment: Mapping[str, str] | None) -> bool:
    assert requirement.marker is not None
    return bool(requirement.marker.evaluate({**(environment or {}), "extra": extra}))


def main(arguments: Sequence[str] | None = None) -> int:
    given = _given(arguments)
    target = Target(tuple(given.tags), given.python_version or platform.python_version())
    out = Path(given.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".bundle-") as place:
        folder = Path(place) / "bundle"
        folder.mkdir()
        own = _own(given.wheel, folder)
        _gather(own, given.extras, folder, target, given.pip)
        _describe(own, given.extras, folder, target)
        shutil.rmtree(out, ignore_errors=True)
        folder.replace(out)
    wheels = sorted(out.glob("*.whl"))
    size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    print(f"bundle: {len(wheels)} wheels, {size:,.0f} MB in {out} ({', '.join(given.extras) or 'no extras'})")
    return 0


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="dist/bundle", help="the folder to make; replaced when it is there")
    parser.add_argument("--extras", help="names between commas or spaces; all but spark when not given")
    parser.add_argument("--platform", help=f"{', '.join(PLATFORMS)}, or a tag such as win_amd64; this machine's")
    parser.add_argument("--python-version", help="of the machine that will install, such as 3.12; this one's")
    parser.add_argument("--wheel", type=Path, help="the wheel of this project; built when not given")
    parser.add_argument("pip", nargs="*", help="more options of `pip download`, after --")
    given = parser.parse_args(arguments)
    if given.python_version and not given.platform:
        parser.error("--python-version is for --platform: without it the wheels are for this Python")
    given.tags = PLATFORMS.get(given.platform, (given.platform,)) if given.platform else ()
    given.extras = _extras(given.extras, parser)
    return given


def _extras(text: str | None, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    if text is None:
        return tuple(name for name in known if name not in HEAVY)
    asked = tuple(text.replace(",", " ").split())
    unknown = [name for name in asked if name not in known]
    if unknown:
        parser.error(f"no extra {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(name for name in known if name != "all") if "all" in asked else asked


def _own(wheel: Path | None, folder: Path) -> Wheel:
    """The wheel of this project, in the folder."""
    if wheel:
        return Wheel(Path(shutil.copy(wheel, folder)))
    _run("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    return Wheel(next(folder.glob("*.whl")))


def _gather(own: Wheel, extras: Sequence[str], folder: Path, target: Target, more: Sequence[str]) -> None:
    """Fetch what the wheels in the folder need until nothing is missing; then check every condition once more."""
    have: dict[NormalizedName, Wheel] = {own.name: own}
    asked: dict[NormalizedName, set[str]] = {own.name: set(extras)}
    while missing := [r for r in _needed(have, asked, target) if canonicalize_name(r.name) not in have]:
        _fetch(missing, folder, target, more)
        have = {wheel.name: wheel for wheel in map(Wheel, folder.glob("*.whl"))}
    for requirement in _needed(have, asked, target):
        found = have[canonicalize_name(requirement.name)]
        if not requirement.specifier.contains(found.version, prereleases=True):
            sys.exit(f"bundle: {found.path.name} does not fit {requirement}: adapt constraints.txt.")


def _needed(
    have: Mapping[NormalizedName, Wheel], asked: dict[NormalizedName, set[str]], target: Target
) -> list[Requirement]:
    """What the wheels that are there need; extras that one asks of another are added to `asked`."""
    environment = target.environment()
    while True:
        found = [r for name, wheel in have.items() for r in wheel.needs(asked.get(name, ()), environment)]
        more = {canonicalize_name(r.name): r.extras for r in found if r.extras}
        if all(extras <= asked.get(name, set()) for name, extras in more.items()):
            return found
        for name, extras in more.items():
            asked.setdefault(name, set()).update(extras)


def _fetch(missing: Sequence[Requirement], folder: Path, target: Target, more: Sequence[str]) -> None:
    """The wheels of these, without what they need in turn."""
    wanted: dict[NormalizedName, str] = {}
    for requirement in missing:
        name = canonicalize_name(requirement.name)
        parts = [part for part in (wanted.get(name, ""), str(requirement.specifier)) if part]
        wanted[name] = ",".join(parts)
    lines = [f"{name}{specifier}" for name, specifier in wanted.items()]
    pinned = ["--constraint", str(ROOT / "constraints.txt")]
    _run("-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps", "--dest", folder,
         *target.options(), *pinned, *more, *lines)  # fmt: skip


def _run(*arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        sys.exit("bundle: nothing was made. " + "\n".join(last[-3:]))


# What is written beside the wheels ------------------------------------------------------------------------------------

INSTALL = """Equipoise {version} without a network
=====================================

In this folder are Equipoise and everything it needs, for {machine}.
Nothing is fetched while it is installed.

1. Copy the folder to the machine, and open a terminal in it.

2. Check that nothing was changed on the way (pip checks each wheel again while it installs):

     Linux      sha256sum --check SHA256SUMS
     macOS      shasum -a 256 --check SHA256SUMS
     Windows    Get-FileHash *.whl        (PowerShell; compare with SHA256SUMS)

3. Make an environment and install into it:

     Linux, macOS
       python{python} -m venv equipoise
       equipoise/bin/python -m pip install --no-index --find-links . --require-hashes -r requirements.txt

     Windows
       py -{python} -m venv equipoise
       equipoise\\Scripts\\python -m pip install --no-index --find-links . --require-hashes -r requirements.txt

4. Try it:

     Linux, macOS    equipoise/bin/equipoise demo
     Windows         equipoise\\Scripts\\equipoise demo

{extras}
"""


def _describe(own: Wheel, extras: Sequence[str], folder: Path, target: Target) -> None:
    """The pins, the instructions, and the hashes of all files."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    wheels = sorted(map(Wheel, folder.glob("*.whl")), key=lambda wheel: (wheel.name != own.name, wheel.name))
    lines = [_pin(wheel, extras if wheel.name == own.name else ()) for wheel in wheels]
    _write(folder / "requirements.txt", "\n".join(lines) + "\n")
    lacking = [name for name in known if name not in (*extras, "all")]
    text = INSTALL.format(
        version=own.version,
        machine=_words(target, wheels),
        python=_short(target),
        extras=f"Extras inside: {', '.join(extras) or 'none'}. Not inside: {', '.join(lacking) or 'none'}.",
    )
    _write(folder / "INSTALL.txt", text)
    files = sorted(file for file in folder.iterdir())
    _write(folder / "SHA256SUMS", "".join(f"{_hash(file)}  {file.name}\n" for file in files))


def _pin(wheel: Wheel, extras: Sequence[str]) -> str:
    asked = f"[{','.join(extras)}]" if extras else ""
    return f"{wheel.name}{asked}=={wheel.version} --hash=sha256:{_hash(wheel.path)}"


def _words(target: Target, wheels: Sequence[Wheel]) -> str:
    """The machine the wheels are for; on Linux also the oldest C library they run on."""
    machine = target.tags[0] if target.tags else f"{platform.system()} on {platform.machine()}"
    oldest = max((wheel.glibc() for wheel in wheels), default=(0, 0))
    library = f" and glibc {oldest[0]}.{oldest[1]} or later" if oldest > (0, 0) else ""
    name = next((name for name, tags in PLATFORMS.items() if tags == target.tags), machine)
    return f"{name} with Python {_short(target)}{library}"


def _short(target: Target) -> str:
    return ".".join(target.python.split(".")[:2])


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main())
