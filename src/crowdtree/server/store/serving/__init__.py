"""Serving workers: questions handed out and answers taken, in batches of one transaction."""
