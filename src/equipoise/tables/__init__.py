"""Change and score tables."""

__all__: list[str] = []
