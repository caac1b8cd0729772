"""Framing and JSON: bytes to frames, however the bytes are chunked; knows no dialect."""
