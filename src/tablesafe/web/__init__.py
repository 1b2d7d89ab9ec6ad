"""The local web app: `tablesafe serve`. It parses what people enter, runs jobs in processes of their own, and shows."""
