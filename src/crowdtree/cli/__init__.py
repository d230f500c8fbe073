"""The command line: the same verbs as in Python."""

from crowdtree.cli.app import main

__all__ = ["main"]
