"""How work is run: how much of it there may be, who hears that it shall stop."""
