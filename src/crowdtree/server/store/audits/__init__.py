"""Audits of the labels of live campaigns: start, hand out items to check, take results, report."""
