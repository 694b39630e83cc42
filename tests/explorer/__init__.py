"""A package, so that its tests share one browser."""
