"""Bytes in, drafts on the way, one result at the end; and which dialect some bytes look like."""
