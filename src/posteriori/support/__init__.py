"""Tools of every part of the library: checks of values, numbers as text, HTML, files, random draws, types."""
