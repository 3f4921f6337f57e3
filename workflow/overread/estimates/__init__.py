"""Tables: estimates with patient-clustered intervals, figures and the report."""
