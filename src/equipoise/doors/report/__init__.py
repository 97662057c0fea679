"""Reports as self-contained HTML pages."""

from equipoise.flow.report import Report


def render(report: Report, public: bool) -> str:
    """A page with everything in it, for the officer or for the public."""
    return f"<!doctype html><title>{report.title}</title>"
