"""Commands about the store, its workers and its health."""
