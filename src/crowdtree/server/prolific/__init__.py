"""Recruit workers on Prolific: one study per campaign, through the Prolific API v1.

==================== ==========================================================================
``prolific.client``  the calls of the API
``prolific.study``   the study of a campaign: reward, estimated time, completion code
``prolific.ledger``  what was sent, in the campaign's activity log, before and after each call
``prolific.studies`` create, publish, pause, resume and stop the study
``prolific.people``  submissions and their workers: approve, reject
``prolific.bonuses`` what is owed beyond the reward, paid once
==================== ==========================================================================
"""
