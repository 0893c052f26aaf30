"""Tools of every part of the library: checks of values, numbers as text, HTML, files, random draws, types.

Whatever more than one folder needs and no folder owns is here. It imports nothing of the folders above it.
"""

is_command = False  # whether this process is a run of the command line, which sets it
