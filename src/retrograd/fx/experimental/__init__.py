"""What torch keeps here: tracing through operations, and questions about sizes."""
