"""Closed forms of risk and utility."""

__all__: list[str] = []
