"""Simulations: a queue of pods on a moving cluster."""
