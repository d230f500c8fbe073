"""The live server: the store, the pages and the API, studies on Prolific, the languages."""
