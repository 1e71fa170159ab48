"""The process that runs a student's functions.

It is a separate program that needs only Python and NumPy. rnnlab is not imported here, and the student's code
cannot import it: the modules of this package import only each other. ``python -I -c START`` runs them.

- :mod:`.wire`: values to bytes and back
- :mod:`.confinement`: restrictions of the process: time, memory, no files, no network, no other processes
- :mod:`.imports`: the modules that the student's code may import
- :mod:`.serve`: defines the functions, calls them and answers with their results
"""
