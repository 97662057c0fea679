"""Messages of pages, without the folders of the paths in them."""

import re

FULL_PATH = re.compile(
    r"""(['"])(?:/|~|\.\.\.|[A-Za-z]:)(?:(?!\1).)*[/\\]((?:(?!\1|[/\\]).)+)\1|(?<![\w/])()/(?:[^\s'"/]+/)+([^\s'"/]+)"""
)
"""Paths in quotes of either kind (a folder may hold an apostrophe), and absolute ones without."""


def without_folders(text: str) -> str:
    """A message in which paths are only the names of their files: where they are is nobody's business on a page.

    >>> without_folders("No file at '/home/me/people.csv'.")
    "No file at 'people.csv'."
    """
    return FULL_PATH.sub(r"\1\2\3\4\1", text)
