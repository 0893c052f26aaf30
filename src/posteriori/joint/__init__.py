"""One distribution of all columns of a table, of which any column can be the question.

Its members, such as the mixture of forests of tables, have weights. Users state findings about cells and ask about
other cells; rows can be drawn, and are compared with the training rows, so that copies are found.
"""
