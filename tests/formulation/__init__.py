"""The formulation: its page, its rows as text, its LP values, and the reductions of its starts."""
