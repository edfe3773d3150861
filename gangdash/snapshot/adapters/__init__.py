"""Records of one API family -> facts of the engine's model, one module per family."""
