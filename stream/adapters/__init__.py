"""Agent frameworks whose calls run here; each needs an extra."""
