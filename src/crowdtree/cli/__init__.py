"""The command line: the same verbs as in Python."""

from crowdtree.cli.app import app, main

__all__ = ["app", "main"]
