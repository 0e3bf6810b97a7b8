"""Tests of the benchmark programs."""
