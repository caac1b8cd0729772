"""What authors of tools use: registry, signatures, context of a call, errors, results."""
