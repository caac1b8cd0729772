"""The operator's side: the command line, the embedded server, health checks and metrics."""
