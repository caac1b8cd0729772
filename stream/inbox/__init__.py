"""Harnesses in any language: entries of a Redis stream in, answers out."""
