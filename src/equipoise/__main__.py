"""`python -m equipoise` is the command `equipoise`."""

from equipoise.doors.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
