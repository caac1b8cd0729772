"""The guarantee: from a claimed call to its stored end, under lease and fence. Knows no RQ."""
