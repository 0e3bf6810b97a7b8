"""Reports of a plan: tables, Gantt charts and summaries for people. Nothing here solves or reads files."""
