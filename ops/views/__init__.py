"""How data looks to people and programs."""
