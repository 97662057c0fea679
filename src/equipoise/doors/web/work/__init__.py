"""Work behind the pages: functions that run in the worker process or in that of a run, on plain data."""
