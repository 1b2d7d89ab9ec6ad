"""The papers, reproduced: pages made by running the code. `python docs/reproduce` writes them all."""
