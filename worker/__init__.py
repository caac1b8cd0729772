"""The work: tools, their execution under a lease, and the life of a worker process."""
