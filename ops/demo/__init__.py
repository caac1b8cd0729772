"""What `toolonce demo` plays."""
