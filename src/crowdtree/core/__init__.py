"""The mathematics below everything: problems, likelihood, votes, trees, plans and their errors."""
