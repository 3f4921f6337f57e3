"""Med3DVLM: one 3-D volume, its own prompt form, and 512 tokens in all.

Its repository's code sees the volume (`network`); what it writes is computed by the library's own language model with
the repository's weights, so that prompts share what they share and readouts mean what they mean elsewhere. `prompts`
has the form. Its answers are letters: under the readout `choice` the log-probabilities are those of " A", " B", ... at
the first generated position, the form in which its training data go on after a question, mapped to the options by
place.
"""
