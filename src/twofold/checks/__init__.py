"""What is wrong with numbers, rows and weights that a user passes, said in a sentence."""
