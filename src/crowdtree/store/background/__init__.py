"""What the server does on its own: maintenance, stalled items, webhook messages that are due."""
