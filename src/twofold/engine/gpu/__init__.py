"""The back end ``gpu``: the engine's sums on a CUDA device, by fused kernels of Triton.

Nothing here is imported before a device is asked for: torch and Triton are optional.
"""
