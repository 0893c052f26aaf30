"""Learning from cases: tables and densities by EM, and graphs by scores and tests."""
