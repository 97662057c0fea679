"""Room for the other half: kills by time and by file operation, full disks, locks, two runs at once.

A part is a function like those of `torture.__main__.PARTS`; this module offers none yet.
"""
