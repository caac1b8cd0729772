"""Adapters that run the calls of agent frameworks through toolonce; each needs an extra."""
