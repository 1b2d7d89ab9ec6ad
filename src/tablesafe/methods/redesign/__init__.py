"""Table redesign: propose collapses of codes and levels, and tables to leave out, before anything is withheld."""
