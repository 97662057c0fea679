"""What exposure, silence and coarseness cost."""

__all__: list[str] = []
