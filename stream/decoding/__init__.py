"""Decoding: the bytes of a response to drafts and one result; and the detection of a dialect."""
