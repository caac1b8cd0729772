"""The embedded server: found, started, shared, watched and ended."""
