"""Proofs that the library can be depended on: long runs in search of crashes, hangs and silence.

Each module is a command, ``python -m dependability.NAME``, with a target in the Makefile; it prints
what was tried and what was found, and fails if anything was found. ``tests/dependability`` runs a
short version of each. The figures are in docs/dependability.md.
"""
