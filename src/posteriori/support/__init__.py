"""What every part of the library uses: checks of values, numbers as text, HTML, files, random draws, types."""
