"""What an owner does: campaigns, drafts, workers, tokens, webhooks."""
