"""Network files and objects of other packages."""
