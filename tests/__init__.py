"""Tests; a package, so that they can share the random instances and the oracle."""
