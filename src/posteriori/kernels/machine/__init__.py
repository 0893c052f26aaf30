"""The machinery: loops become machine code, which is kept in files, found and loaded. It imports no loop by name."""
