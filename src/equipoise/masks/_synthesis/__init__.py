"""Synthesis: columns as variables, the relations they must keep, and three models that draw new values for them."""
