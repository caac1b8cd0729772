"""The operator's side: the command line, the embedded server, what watches and repairs."""
