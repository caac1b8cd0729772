"""The options of commands: which store, which calls, time spans, inputs."""
