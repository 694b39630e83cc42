"""What a page does with its payload, in numpy, straight from the formulas; every pair in memory.

The local polynomial is that of Klanke 2007, section 5.4, with the small ridge of the engine left
out: it only matters where references are fewer than terms.
"""

from __future__ import annotations

import base64
import gzip
import json
import re

import numpy as np

from twofold.kernels import KERNELS


def read_page(text):
    """Return header and data of the text of a page."""
    header = re.search(r'id="twofold-header">(.*?)</script>', text, re.DOTALL).group(1)
    data = re.search(r'id="twofold-data">(.*?)</script>', text, re.DOTALL).group(1)
    return json.loads(header), base64.b64decode(data.strip())


def sections(header, data):
    raw = gzip.decompress(data)
    found = {}
    for name, entry in header["sections"].items():
        dtype = np.dtype(entry["dtype"]).newbyteorder("<")
        count = int(np.prod(entry["shape"]))
        assert entry["offset"] % 8 == 0
        array = np.frombuffer(raw, dtype, count, entry["offset"]).reshape(entry["shape"])
        if "step" in entry:
            array = np.array(entry["low"]) + array * np.array(entry["step"])
        found[name] = array
    return found


def values(header, codes):
    """Return the data that codes stand for, NaN where missing."""
    quantised = header["quantised"]
    found = np.array(quantised["low"]) + codes * np.array(quantised["step"])
    return np.where(codes == quantised["missing"], np.nan, found)


def weights(header, arrays, X):
    """Return w_i F(s_i) (m, n) at latent places X (m, q)."""
    about = header["regression"]
    scale = np.array(about["latent_scale"])
    gaps = (X[:, None, :] - arrays["reg.x"][None]) * scale
    s = (gaps**2).sum(axis=2) / arrays.get("reg.h", np.ones(len(arrays["reg.x"]))) ** 2
    W = arrays.get("reg.w", np.ones(len(arrays["reg.x"])))
    return W * KERNELS[about["kernel"]].value(s), gaps


def density(header, arrays, X):
    return weights(header, arrays, X)[0].sum(axis=1) / header["regression"]["total_weight"]


def regress(header, arrays, X):
    """Return f(x) (m, D)."""
    K, gaps = weights(header, arrays, X)
    Y = values(header, arrays["reg.y"])
    known = ~np.isnan(Y)
    terms = polynomial(header["regression"]["degree"], gaps)
    f = np.empty((len(X), Y.shape[1]))
    for j in range(len(X)):
        for d in range(Y.shape[1]):
            w, some = K[j] * known[:, d], known[:, d]
            if w.sum() == 0:
                f[j, d] = header["regression"]["mean"][d]
                continue
            root = np.sqrt(w[some] / w.sum())[:, None]
            f[j, d] = np.linalg.lstsq(root * terms[j, some], root[:, 0] * Y[some, d])[0][0]
    return f


def polynomial(degree, gaps):
    """Return the terms (m, n, p) of the local polynomial."""
    q = gaps.shape[2]
    terms = [np.ones(gaps.shape[:2])]
    if degree != 0:
        terms += [gaps[..., a] for a in range(q)]
    if degree in (2, "2-axes"):
        terms += [gaps[..., a] ** 2 for a in range(q)]
    if degree == 2:
        terms += [gaps[..., a] * gaps[..., b] for a in range(q) for b in range(a + 1, q)]
    return np.stack(terms, axis=2)
