"""A campaign with no clock and no database: each item's course, and what explains it."""
