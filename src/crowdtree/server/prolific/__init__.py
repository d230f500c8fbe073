"""Recruit workers on Prolific: one study per campaign, through the Prolific API v1.

======================== ======================================================================
``prolific.client``      the calls of the API
``prolific.ledger``      what was sent, in the campaign's activity log, before and after each call
``prolific.studies``     the study of a campaign: create, publish, pause, resume and stop it
``prolific.submissions`` submissions and their workers: approve, reject, pay bonuses once
======================== ======================================================================
"""
