"""Guard: who may talk to the workbench, from where, and how much; and what a browser may do with its answers.

Loopback only, under its own name (no other Host); nothing without the cookie that the one-time address gives; nothing
that another page sends, whatever port it comes from; nothing that changes anything without the page's own token.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENTER, UPLOAD = "/enter", "/open/upload"
SAFE = ("GET", "HEAD")
FORM = 1 << 20
"""Bytes that a form may have."""
LARGEST = 2 << 30
"""Bytes that an uploaded file may have, unless said otherwise."""
CSRF = "x-csrf"
POLICY = (
    "default-src 'none'; script-src 'self' {allowed}; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
TOO_LARGE = "That file is larger than the workbench takes: put it into the working folder and open it by its name."


class TooLarge(Exception):
    """More bytes came than may."""


@dataclass
class Entry:
    """The address that lets a browser in, once, and the secret its cookie then holds."""

    port: int
    csrf: str
    largest: int = LARGEST
    allowed: str = ""
    token: str | None = field(default_factory=lambda: token_urlsafe(32), repr=False)
    secret: str = field(default_factory=lambda: token_urlsafe(32), repr=False)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost"))

    @property
    def cookie(self) -> str:
        """Cookies do not know ports: the name does."""
        return f"equipoise-{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}{ENTER}?token={self.token}"

    def admits(self, token: str) -> bool:
        """Whether the token is the right one; it is used up then."""
        right = self.token is not None and compare_digest(token.encode(), self.token.encode())
        if right:
            self.token = None
        return right


class Guard:
    """Stands before the app; what it refuses never reaches it."""

    def __init__(self, app: App, entry: Entry) -> None:
        self.app, self.entry = app, entry
        self.policy = POLICY.format(allowed=entry.allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        guarded = self._with_headers(send)
        if refusal := self._refusal(scope, headers):
            await refusal(scope, receive, guarded)
            return
        if scope["path"] == ENTER:
            await self._enter(scope)(scope, receive, guarded)
            return
        await self._limited(scope, headers, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why this request is not answered, as a response; None where it is."""
        entry, host = self.entry, headers.get("host", "")
        if host not in entry.hosts:
            return PlainTextResponse("The workbench answers under its own address only.", 421)
        site = headers.get("sec-fetch-site", "same-origin" if "origin" in headers else "none")
        origin = headers.get("origin")
        if site not in ("same-origin", "none") or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("The workbench answers its own pages only.", 403)
        if scope["path"] == ENTER:
            return None if scope["method"] in SAFE else PlainTextResponse("Not that way.", 405)
        if not self._known(headers):
            return PlainTextResponse(
                "This page is private. Open the address that `equipoise open` has printed; it works once, "
                "start it again for a new one. Your session is kept.", 403,
            )  # fmt: skip
        if scope["method"] not in SAFE and not self._own(headers, origin, site):
            return PlainTextResponse("This did not come from the page itself: load it again and try once more.", 403)
        return None

    def _known(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.entry.cookie)
        except CookieError:
            return False
        return found is not None and compare_digest(found.value.encode(), self.entry.secret.encode())

    def _own(self, headers: Headers, origin: str | None, site: str) -> bool:
        """Whether what would change something comes from our page: its origin, and the token that only it has."""
        token = headers.get(CSRF, "")
        return (origin is not None or site == "same-origin") and compare_digest(
            token.encode(), self.entry.csrf.encode()
        )

    def _enter(self, scope: Scope) -> Response:
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self.entry.admits(asked):
            return PlainTextResponse(
                "This address has been used, or is not the right one: start `equipoise open` again.", 403
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(self.entry.cookie, self.entry.secret, httponly=True, samesite="strict", path="/")
        return response

    async def _limited(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """The app, with a body of the size it may have."""
        most = self.entry.largest if scope["path"] == UPLOAD else FORM
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > most:
            await PlainTextResponse(TOO_LARGE, 413)(scope, receive, send)
            return
        came = 0

        async def counted() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise TooLarge
            return message

        async def watched(message: Message) -> None:
            if came <= most:
                await send(message)

        with suppress(TooLarge):
            await self.app(scope, counted, watched)
        if came > most:
            await PlainTextResponse(TOO_LARGE, 413)(scope, receive, send)

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", self.policy)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return sent
