"""Rolling horizon: a world that reveals jobs over time, and policies that decide in it."""
