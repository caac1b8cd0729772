"""The way in and back: provider streams to turns and calls, outcomes to replies."""
