"""The clients: submitting turns and calls, waiting for outcomes, history and replies."""
