"""The whole loop from question to answer, on which any process can go on."""
