"""Files of our own, TOML and JSON: schema in ``docs/models.md``, written bit for bit."""
