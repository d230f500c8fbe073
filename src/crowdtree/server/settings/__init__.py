"""The settings of a campaign: groups, what each setting costs, and presets."""
