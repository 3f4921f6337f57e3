"""Talking to an OpenAI-compatible server: where data may go, how requests are sent, what is kept of the replies.

guard       restricted data go to this machine or to an attested endpoint    transport  the HTTP client that holds to it
flight      how many requests are on their way at once                       adapting   parameters a model does not take
replies     what a server said, read strictly                                faults     what may be sent again, what not
client      many requests, bounded tries                                     asking     with a work file: resumed
"""
