"""What loops carry: forces in loop joints, reactions in all joints, actuators that hold a motion.

Imports the solution of closed loops.
"""
