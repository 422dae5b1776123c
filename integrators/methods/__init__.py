"""The families of methods, one a file; ``textbook`` is the place to start reading."""
