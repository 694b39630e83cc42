"""Densities over latent points, and points drawn from them."""
