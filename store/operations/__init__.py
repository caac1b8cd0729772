"""What may be asked of the store: one script or query each, its arguments and how its reply is read."""
