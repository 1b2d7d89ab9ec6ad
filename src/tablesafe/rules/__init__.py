"""Rules: what is sensitive, and how far it must be hidden."""
