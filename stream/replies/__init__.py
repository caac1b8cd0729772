"""What the replies of all dialects share: one answer per call, call ids, and texts for model and user."""
