"""What the pages ask of the data: functions that run in the desk's process or in that of a run, on plain data."""
