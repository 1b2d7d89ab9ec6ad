"""The pages of the web app. Modules without NiceGUI in them hold tasks for the worker process of a session."""
