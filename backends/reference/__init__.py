"""The interpreter that every lowering is compared with; it calls no lowering."""
