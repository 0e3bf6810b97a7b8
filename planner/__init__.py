"""The planner: engines, files, reports and the command line over `models`. Importing this package is cheap."""

__version__ = "0.1.0"
