"""Tests of the connection to Prolific, against a stub of its API."""
