"""What is concluded: estimands, intervals, tests and the decision rule, on arrays alone. The tables call these."""
