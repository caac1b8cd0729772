"""Commands with which a person decides about calls."""
