"""The subcommands of ``harness``: one module each, imported only when its command is meant."""
