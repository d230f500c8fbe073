"""What the API and the pages do, without HTTP: they call these and not each other."""
