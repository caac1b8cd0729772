"""Connections to a server, waiting for outcomes, the choice of the store, and checks of the server."""
