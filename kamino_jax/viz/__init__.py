"""Pictures of simulations (extra `viz`)."""
