"""What every dialect's replies share: one answer per call, ids, and the words for model and user."""
