"""What methods that change records share: the records behind a table, strata, and what became of the cells."""
