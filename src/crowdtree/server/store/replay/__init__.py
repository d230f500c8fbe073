"""Verification of a campaign: fold the log of every item and compare all that is stored."""
