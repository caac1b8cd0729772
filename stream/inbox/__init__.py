"""The inbox: harnesses in any language add entries to a Redis stream and get answers."""
