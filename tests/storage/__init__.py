"""Tariffs, and what to cache and to buy."""
