"""Cohere's chat, version 2."""
