"""The database itself: engine, tables, statements with their row types."""
