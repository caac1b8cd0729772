"""Ollama's native chat (`/api/chat`)."""
