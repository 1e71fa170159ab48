"""The process that runs a student's functions.

It is a program of its own, with Python and NumPy alone. rnnlab is not imported here, and the student's code
cannot import it: the modules of this package import nothing but each other. ``python -I -c START`` runs them.

- :mod:`.wire`: values to bytes and back
- :mod:`.confinement`: what the process may do: time, memory, no files, no network, no other processes
- :mod:`.imports`: which modules the student's code may import
- :mod:`.serve`: defines the functions, calls them and answers with their results
"""
