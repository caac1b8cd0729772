"""What one provider response comes to: calls, drafts, verdict; and what every dialect's reader shares."""
