"""Snoopers who guess the numbers of people from a release, for `ValueDisclosure` and `KnownWithin`."""
