"""The animated picture of the README: a double pendulum that turns over."""

from pathlib import Path

from multibody import animate, mechanisms, simulate

model = mechanisms.double_pendulum()
motion = simulate(model, [2.0, 0.5], T=4.0)
path = Path(__file__).with_name("double_pendulum.gif")
animate.save(model, motion, path, fps=15, dpi=50)
