"""Methods compared on problems: the study, its table, figure and commands."""
