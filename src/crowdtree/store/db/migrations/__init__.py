"""Migrations of the database (Alembic)."""
