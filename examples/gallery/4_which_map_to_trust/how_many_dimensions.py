"""How many dimensions does a table have?

``choose_dimension`` looks at neighbourhoods of growing size. Here the truth is three.
"""

from matplotlib import pyplot as plt

from twofold import datasets, selection

sheet = datasets.make_random_manifold(300, 3, 20, noise=0.05, random_state=0)
choice = selection.choose_dimension(sheet.Y)
print(choice.reason)
choice.plot()
plt.show()
