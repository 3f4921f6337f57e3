"""Talking to an OpenAI-compatible server: where data may go, how requests are sent, what is kept of the replies.

guard       restricted data go to this machine or to an attested endpoint    transport  the HTTP client that holds to it
connecting  the client library's connection, Azure's too                     adapting   parameters a model does not take
flight      how many requests are on their way at once                       faults     what may be sent again, what not
replies     what a server said, read strictly                                trying     one step, tried again
client      many requests, bounded tries                                     batches    the same as files, within a day
spending    what it costs, and a budget that all jobs share                  asking     with a work file: resumed
"""
