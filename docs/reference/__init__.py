"""The reference pages, made from the code by `python docs/reference`. A test keeps them up to date."""
