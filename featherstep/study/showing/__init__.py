"""What is looked at: pictures of a study, its page, and a bar while it runs.

Nothing is computed here that a table does not have; nobody but ``Study`` imports it.
"""
