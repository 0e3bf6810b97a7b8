"""Policies of the rolling horizon: simple rules, published heuristics, and this planner. `registry` lists them."""
