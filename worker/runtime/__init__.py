"""The life of a worker process: queues, slots, signals, registration with RQ. Knows no rule of the guarantee."""
