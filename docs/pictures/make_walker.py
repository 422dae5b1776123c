"""Make walker.png: the compass walker on its stones, and the cycle of its legs."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from integrators import solve
from multibody import mechanisms

entry = mechanisms.entry("compass_walker")
model = entry.model()
run = solve(entry.problem(), rtol=1e-9, atol=1e-10, dense_output=True)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 3.4), layout="constrained", width_ratios=(3, 1)
)
for t in np.arange(0.0, 3.0, 0.12):
    x, z, *legs = run.sol(t)[:4]
    for angle, colour in zip(legs, ("tab:blue", "tab:orange")):
        left.plot([x, x - np.sin(angle)], [z, z - np.cos(angle)], color=colour, lw=1.2)
    left.plot(x, z, "o", color="black", ms=4)
for contact in model.contacts[:6]:
    stone = contact.shape_a
    colour = ("tab:blue", "tab:orange")[contact.body_b % 2 == 0]
    place = (stone.centre[0], stone.centre[2])
    left.add_patch(plt.Circle(place, 2.5 * stone.radius, color=colour, alpha=0.4))
left.set(aspect="equal", xlabel="x / m", ylabel="z / m")
left.set_title("compass walker, down a slope of 0.0525 rad", loc="left", fontsize="medium")
for part in run.parts:
    for k, colour in ((2, "tab:blue"), (3, "tab:orange")):
        right.plot(part.y[k], part.y[k + 4], color=colour, lw=1.2)
right.set(xlabel="angle of a leg / rad", ylabel="its rate / (rad/s)")
right.set_title("limit cycle", loc="left", fontsize="medium")
figure.savefig(Path(__file__).with_name("walker.png"), dpi=80)
