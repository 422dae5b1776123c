"""What dynamics costs, and how far its results can be trusted (book, chapter 10)."""
