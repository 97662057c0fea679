"""Who may talk to the workbench: its own page, from this machine, with its token; everybody else is refused."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from equipoise.doors.web.app import build
from equipoise.doors.web.app_state import Office
from equipoise.doors.web.background_runs import Run
from equipoise.doors.web.request_guard import Entry
from equipoise.doors.web.workspace import Workspace

HOME = "http://127.0.0.1:8765"
PAGES = ("/", "/understand", "/shape", "/balance", "/tables", "/publish", "/release", "/steps", "/openapi.json")


@pytest.mark.parametrize("path", PAGES)
def test_nothing_without_the_token(workbench: Any, path: str) -> None:
    stranger = TestClient(workbench.client.app, base_url=HOME)
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "equipoise open" in answer.text


def test_the_address_works_once(workbench: Any) -> None:
    assert workbench.entry.token is None
    for token in ("", "None", workbench.entry.secret):
        stranger = TestClient(workbench.client.app, base_url=HOME)
        assert stranger.get("/enter", params={"token": token}, follow_redirects=False).status_code == 403
        assert not stranger.cookies


def test_a_wrong_cookie_is_none(workbench: Any) -> None:
    for cookie in ("equipoise-8765=wrong", "equipoise-8765=", "equipoise-1=" + workbench.entry.secret, "\x01;=", "a=b"):
        stranger = TestClient(workbench.client.app, base_url=HOME)
        assert stranger.get("/", headers={"Cookie": cookie}).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:8766", "0.0.0.0:8765", "", "localhost:8765.x"]
)
def test_another_name_is_refused(workbench: Any, host: str) -> None:
    """A page elsewhere whose name was made to lead here (rebinding) has its own name in Host."""
    assert workbench.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9000", "https://127.0.0.1:8765"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_another_origin_is_refused(workbench: Any, origin: str, method: str) -> None:
    headers = {**workbench.headers(), "Origin": origin}
    assert getattr(workbench.client, method)("/", headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_another_site_is_refused(workbench: Any, site: str) -> None:
    """Another port of this machine is the same site to a browser, not the same origin."""
    assert workbench.get("/", headers={"Sec-Fetch-Site": site}).status_code == 403


@pytest.mark.parametrize("lacking", ["X-CSRF", "Origin"])
def test_a_change_needs_origin_and_token(workbench: Any, lacking: str) -> None:
    headers = {name: value for name, value in workbench.headers().items() if name != lacking}
    assert workbench.client.post("/open/demo", headers=headers).status_code == 403
    assert workbench.client.post("/open/demo", headers={**workbench.headers(), "X-CSRF": "x"}).status_code == 403
    assert not workbench.office.opened


def test_what_a_browser_may_do_is_said_on_every_answer(workbench: Any) -> None:
    for path in ("/", "/static/workbench.js", "/nowhere", "/enter"):
        headers = workbench.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
    cookie = TestClient(build(workbench.office, entry := Entry(8765, "x")), base_url=HOME).get(
        f"/enter?token={entry.token}", follow_redirects=False
    )
    assert re.search(r"HttpOnly.*SameSite=strict", cookie.headers["set-cookie"], re.I)


def test_no_page_holds_a_script_or_style_of_its_own(module_sampled: Any) -> None:
    for path in PAGES[:7]:
        text = module_sampled.get(path).text
        assert not re.search(r"<[^>]+\s(style|on\w+)=", text), path
        scripts = re.findall(r"<script(?![^>]*(?:src=|application/json|importmap))[^>]*>", text)
        assert not scripts, path
        assert not re.search(r"(src|href)=[\"']?(https?:)?//", text), path


def test_the_only_inline_script_is_the_one_allowed(workbench: Any) -> None:
    import base64

    (imports,) = re.findall(r'<script type="importmap">(.*?)</script>', workbench.get("/").text, re.S)
    digest = base64.b64encode(hashlib.sha256(imports.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in workbench.get("/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/guard.py", "/static/README.md", "/static/x.js",
        "/release/file/public/..%2f..%2fprivate%2fseed.json", "/release/file/private/seed.json",
        "/release/report/..%2f..%2fetc", "/release/file/other/data.csv",
    ],
)  # fmt: skip
def test_no_path_leads_out(module_sampled: Any, path: str) -> None:
    answer = module_sampled.get(path)
    assert answer.status_code in (404, 422)
    assert "seed" not in answer.text.lower() or "seed.json" in path


@pytest.mark.parametrize(
    "name", ["../secret.csv", "..\\secret.csv", "/etc/passwd", "demo/../../secret.csv", ".equipoise"]
)
def test_no_file_outside_the_folder_is_opened(tmp_path: Path, workbench_at: Any, name: str) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "work").mkdir()
    found = workbench_at(tmp_path / "work")
    answer = found.post("/open/file", {"name": name})
    assert answer.status_code == 422
    assert not found.office.opened


def test_a_huge_upload_is_refused_before_it_is_read(tmp_path: Path) -> None:
    office = Office(Workspace.at(tmp_path))
    entry = Entry(8765, office.csrf, largest=1000)
    client = TestClient(build(office, entry), base_url=HOME, raise_server_exceptions=False)
    client.get(f"/enter?token={entry.token}")
    headers = {"Origin": HOME, "X-CSRF": office.csrf, "X-Version": "0"}
    declared = client.post("/open/upload", files={"file": ("a.csv", b"a\n" * 1000)}, headers=headers)
    assert declared.status_code == 413

    def endless() -> Any:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(100):
            yield b"a\n" * 100

    streamed = client.post(
        "/open/upload", content=endless(), headers={**headers, "Content-Type": "multipart/form-data; boundary=x"}
    )
    assert streamed.status_code == 413
    assert not (tmp_path / "uploads").exists()
    office.close()


def test_a_form_is_small(workbench: Any) -> None:
    assert workbench.post("/open/file", {"name": "x" * (2 << 20)}).status_code == 413


HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


def test_names_and_values_are_text_everywhere(tmp_path: Path, workbench_at: Any) -> None:
    """A column called like a script, with values like scripts, is shown as text on every page."""
    ages = [20 + i % 50 for i in range(200)]
    areas = [f"<img src=x onerror=alert({i % 3})>" for i in range(200)]
    pl.DataFrame({HOSTILE: ["a<b>", "c"] * 100, "age": ages, "region": areas}).write_parquet(tmp_path / "x.parquet")
    found = workbench_at(tmp_path)
    assert found.post("/open/file", {"name": "x.parquet"}).status_code == 200
    for path in (*PAGES[:7], "/open/preview", "/steps"):
        text = found.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "&{49}" not in text, path
    changed = found.post("/open/role", {"column": HOSTILE, "role": "sensitive"})
    assert changed.status_code == 200
    assert "<script>alert" not in changed.text


def test_nothing_is_said_but_the_kind_of_an_internal_error(
    workbench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("CANARY-4711")

    monkeypatch.setattr("equipoise.doors.web.pages.open_file.write_demo", broken)
    answer = workbench.post("/open/demo")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text
    assert "CANARY" not in answer.text + caplog.text


def test_the_session_and_its_runs_are_for_their_owner_only(module_sampled: Any) -> None:
    module_sampled.office.runs._keep(Run("0" * 16, "x", None, state="done"))
    private = module_sampled.folder / ".equipoise"
    assert private.stat().st_mode & 0o077 == 0
    for place in private.rglob("*"):
        assert place.stat().st_mode & 0o077 == 0, place


def test_the_assets_are_the_published_ones() -> None:
    home = files("equipoise.doors.web") / "static"
    readme = (home / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\S+) \| [\d.]+ \| .*?\((\S+)\) \| (\S+) \| \w+ \| (\w{64}) \|$", readme, re.M)
    assert [name for name, *_ in lines] == ["htmx", "vega-interpreter"]
    for _, licence, file, digest in lines:
        assert hashlib.sha256((home / file).read_bytes()).hexdigest() == digest
        assert (home / licence).is_file()
