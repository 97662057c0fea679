"""Score a release by trying to break it."""

__all__: list[str] = []
