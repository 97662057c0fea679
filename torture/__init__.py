"""Torture: bad input of every kind, and later kills, made from a seed; `make torture SEED=... MINUTES=...`.

Nothing here knows how the package works inside. A part makes one attempt from a random stream: a command line, or a
call of Python. The judge says whether it was answered as it should be, and the runner keeps time.
"""
