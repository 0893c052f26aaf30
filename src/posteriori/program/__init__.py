"""A fitted model as functions of arrays of any namespace of the array API: NumPy runs them, ndonnx writes ONNX."""
