"""Programs that show one thing each, with servers of their own."""
