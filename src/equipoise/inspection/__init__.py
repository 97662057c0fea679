"""Before anything is done: assess a file, suggest roles, find direct identifiers."""
