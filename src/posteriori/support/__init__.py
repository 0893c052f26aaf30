"""What every part of the library uses: checks of values, numbers as text, files, random draws, types."""
