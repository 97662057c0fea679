"""Ways in, all equal: Python, the command line, reports."""
