"""Contact: gaps, forces and impulses of bodies that touch (book, chapter 11).

What runs make of it is in ``multibody.runs.contact``.
"""
