"""Read-only queries for pages, downloads and the API."""
