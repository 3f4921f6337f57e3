"""The viewer: a run's studies, answers and tables as web pages, on the machine that holds them."""
