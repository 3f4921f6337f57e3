"""Settings: what a model is shown with a question, and how its answer is read. One module per aspect.

image    the view, whose image, which substitute     order      image or text first
report   which report, a warning about it            options    the order of the options
attention  layers from which the report is hidden    readout    how the answer is asked for and read
questions  which questions are asked

base     what an aspect can say of itself    registry   which aspects there are    setting   all as one object

A module here that defines an `Aspect`, or one that another package names under the entry point group
`overread.settings`, is all that a new field needs: the config, its schema, the plan, the trials, the tables and the
words of report and viewer ask the registry.
"""
