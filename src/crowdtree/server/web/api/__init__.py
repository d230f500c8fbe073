"""The HTTP API, for programs and for the scripts of the pages."""
