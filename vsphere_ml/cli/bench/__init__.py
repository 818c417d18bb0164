"""`vsml bench`: one file a sub-command, gathered in `app.py`; `Record` is what most of them read.

`vsml bench [cluster.toml]` is short for `vsml bench run [cluster.toml]`: see `group.py`.
"""
