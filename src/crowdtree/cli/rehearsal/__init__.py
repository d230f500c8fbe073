"""Demonstrations: the embedded example as a campaign, and campaigns with simulated workers."""
