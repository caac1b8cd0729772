"""One turn: its calls, drafts, verdict and errors, and the interface of the dialects' readers."""
