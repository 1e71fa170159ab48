"""Recurrent layers: one loop over time, and the cells that it serves."""
