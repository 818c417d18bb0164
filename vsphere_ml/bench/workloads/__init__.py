"""Programs that are copied to guests and run there. They import nothing of vsml, and nothing here imports them."""
