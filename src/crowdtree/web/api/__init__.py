"""The API for machines, and for the scripts of our own pages."""
