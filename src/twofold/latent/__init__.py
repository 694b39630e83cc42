"""Latent points: where they begin, densities over them, and points drawn from these."""
