"""The subcommand ``rejoin proxy``."""
