"""Other tools' output as records, so that old logs get a bracket, an interval and a comparison."""
