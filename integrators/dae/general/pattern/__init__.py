"""What follows from the pattern of derivatives alone: signature, blocks, index, freedoms.

No equation is evaluated here.
"""
