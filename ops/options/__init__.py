"""What commands take: which store, which calls, spans of time, inputs."""
