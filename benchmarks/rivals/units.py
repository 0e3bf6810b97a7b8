"""Whole numbers for CP-SAT: in what units money, rates and power are counted."""

MONEY = 1000
"""Units of the objective for one of the currency."""
FINE = 1_000_000
"""Prices of single units are rounded to such a part of a unit of money."""
RATE = 40
"""Units of a MB/s: rates to a tenth, throttled to quarters, are whole."""
WATT = 1000
"""Parts of a kW."""
