"""The reference loop from question to answer, which any process can continue."""
