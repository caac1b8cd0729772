"""Live turns from a provider: one response, and when a request is repeated."""
