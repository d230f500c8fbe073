"""What owners correct afterwards: answers to exclude, and items set aside to reopen."""
