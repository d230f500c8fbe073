"""The fusion centre over HTTP: pages for workers and owners, and an API for machines."""

from crowdtree.web.app import create_app

__all__ = ["create_app"]
