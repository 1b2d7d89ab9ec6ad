"""Linear and integer programs: the only place that imports a solver."""
