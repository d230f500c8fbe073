"""What the server does on its own: maintenance, stalled items, alarms, webhooks."""
