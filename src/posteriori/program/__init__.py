"""A fitted model as functions of arrays: NumPy runs them, and ndonnx writes them as a graph of ONNX.

Each density states its log factors once, in the functions of the array API standard, with missing cells summed out.
`arrays` has what the standard lacks, `cells` the rows, `densities` a program for each density, `model` the posterior of
a model or pool, and `onnx` the inputs and outputs of a graph. Kernels compute the same for tables.
"""
