"""Validates arguments against a tool's JSON Schema, in counted steps."""
