"""Give a t-SNE picture a way back.

``upgrade`` keeps every point where t-SNE drew it. Then new rows (black crosses) can be placed, and
any place of the picture becomes an image.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE

from twofold import upgrade

Y, digits = load_digits(return_X_y=True)
picture = TSNE(random_state=0).fit_transform(Y[:600])

# %%
model = upgrade(picture, Y[:600])
new = model.transform(Y[600:640])

figure, axis = plt.subplots(figsize=(6, 5), layout="constrained")
axis.scatter(*picture.T, c=digits[:600], cmap="tab10", s=8)
axis.scatter(*new.T, c="black", marker="x", s=30)
for place in new[:6]:
    small = axis.inset_axes([*(place - 3), 6, 6], transform=axis.transData)
    small.imshow(model.inverse_transform([place])[0].reshape(8, 8), cmap="gray_r")
    small.set(xticks=[], yticks=[])
axis.set_axis_off()
plt.show()
