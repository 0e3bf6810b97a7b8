"""Plans within a budget, and the frontier of what is spent against what service loses."""
