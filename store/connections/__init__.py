"""The way to a server: connections, waiting, which store is meant, and what the server promises."""
