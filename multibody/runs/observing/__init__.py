"""What to look at along a run: closure, energy and its ledger, momenta, reactions.

Reads a model and states; changes nothing.
"""
