"""Limits and the policy file that holds them: read, check, explain, propose a first one."""
