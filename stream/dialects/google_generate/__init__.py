"""Google generateContent."""
