"""Tests of reading and writing."""
