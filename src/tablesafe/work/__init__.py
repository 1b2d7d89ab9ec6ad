"""How long, where, and what was worked out already: budgets, executors, memory of results."""
