"""The compiled search behind optimal trees, on arrays alone."""
