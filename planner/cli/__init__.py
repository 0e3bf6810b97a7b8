"""The command line: one file a command. Everything heavy is imported inside the commands."""
