"""The workbench: a local page on which a file goes from raw to released.

The page is drawn on the server (FastAPI, Jinja2, htmx); data never leaves this machine and is held by a separate
process, so that the page answers while work runs. What the page edits is a policy, the same that
the command line reads.
"""
