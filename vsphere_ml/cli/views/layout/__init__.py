"""What every view is made of: text without markup of strangers, boxes, errors, and the one JSON envelope."""
