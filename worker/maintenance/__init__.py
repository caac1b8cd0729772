"""Mending what died, and settling what is unknown."""
