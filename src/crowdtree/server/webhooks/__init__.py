"""Webhooks: messages to programs of owners, at least once and in order.

====================== =====================================================================
``webhooks.feeds``     rows that are reported, and how a message is made of them
``webhooks.hooks``     add, list, retry and remove webhooks
``webhooks.outbox``    which messages are due, and what became of them
``webhooks.delivery``  sign and send them
``webhooks.addresses`` where they may go
====================== =====================================================================
"""
