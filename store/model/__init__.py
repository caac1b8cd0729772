"""Values and rules without I/O: states, identity, outcomes, specs, keys, sealing."""
