"""The command line: thin verbs over the package. Nothing heavy is imported before a verb needs it."""

from towpath.cli.app import main

__all__ = ["main"]
