"""Request guard: access control of the workbench, size limits, and security headers of its answers.

Loopback only and its own Host only; a cookie from the one-time address is required; requests from other origins,
whatever their port, are refused; a request that changes anything needs the CSRF token of the page.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from secrets import token_urlsafe

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENTER_PATH, UPLOAD_PATH = "/enter", "/open/upload"
SAFE_METHODS = ("GET", "HEAD")
MAX_FORM_BYTES = 1 << 20
"""Largest size of a form."""
MAX_UPLOAD_BYTES = 2 << 30
"""Largest size of an uploaded file by default."""
CSRF_HEADER = "x-csrf"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' {allowed}; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
TOO_LARGE_TEXT = "That file is larger than the workbench takes: put it into the working folder and open it by its name."


class TooLarge(Exception):
    """The body of a request is larger than allowed."""


@dataclass
class Entry:
    """The one-time address that lets a browser in, and the secret of its cookie."""

    port: int
    csrf: str
    largest: int = MAX_UPLOAD_BYTES
    allowed: str = ""
    token: str | None = field(default_factory=lambda: token_urlsafe(32), repr=False)
    secret: str = field(default_factory=lambda: token_urlsafe(32), repr=False)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost"))

    @property
    def cookie(self) -> str:
        """The name of the cookie; it holds the port, because cookies are shared between ports."""
        return f"equipoise-{self.port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}{ENTER_PATH}?token={self.token}"

    def admits(self, token: str) -> bool:
        """Whether the token is the right one; a right token is valid once."""
        right = self.token is not None and compare_digest(token.encode(), self.token.encode())
        if right:
            self.token = None
        return right


class Guard:
    """Middleware in front of the app; refused requests never reach it."""

    def __init__(self, app: ASGIApp, entry: Entry) -> None:
        self.app, self.entry = app, entry
        self.policy = CONTENT_POLICY.format(allowed=entry.allowed)

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
        if scope["path"] == ENTER_PATH:
            await self._enter(scope)(scope, receive, guarded)
            return
        await self._limited(scope, headers, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The response that refuses a request; None where it is allowed."""
        entry, host = self.entry, headers.get("host", "")
        if host not in entry.hosts:
            return PlainTextResponse("The workbench answers under its own address only.", 421)
        site = headers.get("sec-fetch-site", "same-origin" if "origin" in headers else "none")
        origin = headers.get("origin")
        if site not in ("same-origin", "none") or (origin is not None and origin != f"http://{host}"):
            return PlainTextResponse("The workbench answers its own pages only.", 403)
        if scope["path"] == ENTER_PATH:
            return None if scope["method"] in SAFE_METHODS else PlainTextResponse("Not that way.", 405)
        cookie = Request(scope).cookies.get(entry.cookie, "")
        if not compare_digest(cookie.encode(), entry.secret.encode()):
            return PlainTextResponse(
                "This page is private. Open the address that `equipoise open` has printed; it works once, "
                "start it again for a new one. Your session is kept.", 403,
            )  # fmt: skip
        if scope["method"] not in SAFE_METHODS and not self._own(headers, origin, site):
            return PlainTextResponse("This did not come from the page itself: load it again and try once more.", 403)
        return None

    def _own(self, headers: Headers, origin: str | None, site: str) -> bool:
        """Whether a request that changes something comes from our page, by its origin and CSRF token."""
        token = headers.get(CSRF_HEADER, "")
        return (origin is not None or site == "same-origin") and compare_digest(
            token.encode(), self.entry.csrf.encode()
        )

    def _enter(self, scope: Scope) -> Response:
        if not self.entry.admits(Request(scope).query_params.get("token", "")):
            return PlainTextResponse(
                "This address has been used, or is not the right one: start `equipoise open` again.", 403
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(self.entry.cookie, self.entry.secret, httponly=True, samesite="strict", path="/")
        return response

    async def _limited(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Call the app, with the size of the body limited."""
        most = self.entry.largest if scope["path"] == UPLOAD_PATH else MAX_FORM_BYTES
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > most:
            await PlainTextResponse(TOO_LARGE_TEXT, 413)(scope, receive, send)
            return
        came = 0

        async def receive_limited() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise TooLarge
            return message

        async def send_limited(message: Message) -> None:
            if came <= most:
                await send(message)

        with suppress(TooLarge):
            await self.app(scope, receive_limited, send_limited)
        if came > most:
            await PlainTextResponse(TOO_LARGE_TEXT, 413)(scope, receive, send)

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", self.policy)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return sent
