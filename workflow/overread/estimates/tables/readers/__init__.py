"""Tables of people beside the models, where the config names their ratings."""
