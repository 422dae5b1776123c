"""Make contact.png: the mechanisms of the catalogue that touch, with the forces at one time."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from multibody import mechanisms, simulate
from multibody.pictures import plot

SHOWN = {
    "rocking_block": 0.25,
    "sliding_ladder": 0.45,
    "bead_on_sphere": 0.8,
    "dropped_rod": 2.0,
}

figure, axes = plt.subplots(1, len(SHOWN), figsize=(12, 3.2), layout="constrained")
for (name, t), ax in zip(SHOWN.items(), axes):
    entry = mechanisms.entry(name)
    model = entry.model()
    plot.still(model, simulate(model, *entry.start(model), T=t, fps=60), ax=ax)
    ax.set_title(f"{model.name}, t = {t:g} s", loc="left", fontsize="medium")
figure.savefig(Path(__file__).with_name("contact.png"), dpi=80)
