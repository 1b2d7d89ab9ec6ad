"""What everything else speaks of: hierarchies, tables, problems, releases, and the errors about them."""
