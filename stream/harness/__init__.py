"""The clients of harnesses: submit turns and calls, wait for outcomes, build histories and replies."""
