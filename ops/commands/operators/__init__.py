"""Commands by which a person decides about calls."""
