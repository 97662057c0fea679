"""What the system costs, always against something measured in the same run.

`make bench` (or `python -m benchmarks [name ...]`) prints one row for each claim: ours, the yardstick, their ratio and
its limit, and writes them to bench-results/. Costs are CPU seconds, the best of several interleaved repetitions: wall
time on a shared machine says little, and only ratios are judged. `--quick` runs everything on a fiftieth of the records
and judges nothing. `EQUIPOISE_DATA` names the folder of public files that the lattice and the linkage are run on. The
packages that linkage is compared with come by `uv pip install --group bench`, here or in an environment of their own
whose Python `EQUIPOISE_PEERS` names. `python -m benchmarks.attack_table` makes the tables of docs/attacks.md.
"""
