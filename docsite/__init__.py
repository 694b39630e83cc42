"""What builds the documentation site: the gallery, formulas, and a check of how pages read."""
