"""The least costly pattern, by branch and cut (Fischetti & Salazar-González, Management Science 47, 2001)."""
