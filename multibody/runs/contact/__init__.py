"""Runs with rigid contact: event-driven through modes, or in time steps of Moreau and Jean."""
