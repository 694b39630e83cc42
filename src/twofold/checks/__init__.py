"""What is wrong with parameters, rows and weights that a user passes, said in a sentence."""
