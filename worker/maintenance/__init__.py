"""Recovery of what dead workers left, and reconciles of unknown calls."""
