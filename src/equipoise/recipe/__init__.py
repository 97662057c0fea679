"""The catalogue of methods by name, and the Recipe: masks in order."""
