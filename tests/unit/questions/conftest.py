def pytest_configure(config):
    config.addinivalue_line("markers", "release: needs lmms-eval, VLMEvalKit or inspect_ai in an environment of its own")
