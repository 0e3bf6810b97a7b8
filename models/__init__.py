"""The problem and its mathematics: domain, starts, costs, formulation, checker. Imports nothing of planner."""
