"""What all printers share: expressions with precedence, indices, names, lines, the walk over ops, tables of scalars."""
