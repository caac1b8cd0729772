"""The truth about calls: identity, records, states and every script that changes them."""
