"""Programs for developers of hms-gateway: they write documents and stubs. Not part of the installed package."""
