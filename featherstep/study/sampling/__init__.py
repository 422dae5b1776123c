"""Which values parameters have: laws, designs, and how much of a variance each one brings.

Imports nothing else of the study.
"""
