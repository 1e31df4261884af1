"""`apply`: does what the plan of an audit says, each action after a look at the catalog and the directory."""
