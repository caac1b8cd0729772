"""OpenAI Chat Completions, and compatible servers."""
