"""What the server does with campaigns on its own: one module per rule."""
