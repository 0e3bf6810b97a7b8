"""The history of nightly runs: what was planned when, at what cost, in one SQLite file."""
