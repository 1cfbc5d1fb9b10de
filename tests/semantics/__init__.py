"""Random programs applied to torch and to the library under test, compared after every step."""
