"""The dialects: one folder for each provider's wire format, and one table of all of them."""
