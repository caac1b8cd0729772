"""Tool definitions of requests: what the rules of a provider make of a published tool. Knows no dialect."""
