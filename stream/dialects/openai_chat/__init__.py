"""OpenAI Chat Completions, and the servers that imitate it."""
