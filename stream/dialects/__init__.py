"""The providers' wire formats, a folder each, and the one table over all of them."""
