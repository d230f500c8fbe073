"""The server of live campaigns: pages for workers and owners, and an HTTP API."""

from crowdtree.server.web.app import create_app

__all__ = ["create_app"]
