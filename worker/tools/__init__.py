"""What authors of tools declare and say: registry, signatures, context of a call, errors, results."""
