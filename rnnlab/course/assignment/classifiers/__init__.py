"""The models of the assignment."""
