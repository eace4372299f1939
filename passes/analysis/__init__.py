"""What passes ask of a program before they change it; `docs/ir.md` lists the questions."""
