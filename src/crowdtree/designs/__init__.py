"""Designs: trees of questions, how many people answer each, and the frontier of error and price."""
