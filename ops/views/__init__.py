"""Output: tables for people, JSON for programs, and logs."""
