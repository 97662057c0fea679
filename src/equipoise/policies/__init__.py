"""Policies: limits and policy files; read, check, explain, propose a first one."""
