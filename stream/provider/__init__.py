"""Turns live from a provider: reading one response, and repeating a request."""
