"""Time steps with many contacts: motion between impacts, nearness, sparse rows, impulses."""
