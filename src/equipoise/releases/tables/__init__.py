"""The same for tables: tabulate, balance, register, verify."""
