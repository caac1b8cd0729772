"""The providers' wire formats, a folder each, and the tables over all of them."""
