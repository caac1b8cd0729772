"""Commands that run something: demo, worker, consumer, submissions."""
