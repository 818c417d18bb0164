"""Training regimes in a report: their figures as tables, and a drawing of what goes where."""
