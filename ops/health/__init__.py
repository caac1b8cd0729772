"""What the doctor looks at, and what it finds."""
