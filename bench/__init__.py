"""How fast, against the roofline and against every rival that installs; README.md beside this file says how it is measured."""
