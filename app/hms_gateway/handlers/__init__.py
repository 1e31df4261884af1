"""One class for each aggregate, one method for each IDL method."""
