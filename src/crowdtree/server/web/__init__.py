"""The server of live campaigns: pages for workers and owners, and an HTTP API."""
