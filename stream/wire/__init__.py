"""Bytes to frames and JSON, whatever pieces they come in; knows no provider."""
