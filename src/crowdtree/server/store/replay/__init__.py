"""Verification of a campaign: replay its log and reconcile every stored sum with it."""
