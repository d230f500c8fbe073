"""Webhooks: messages to programs of owners, at least once and in order.

===================== ======================================================================
``webhooks.hooks``    add, list, retry and remove webhooks
``webhooks.outbox``   rows that are reported, messages that are due, what became of them
``webhooks.delivery`` where messages may go; sign and send them
===================== ======================================================================
"""
