"""Recipes: TOML files that describe an experiment, and their schema."""
