"""What happens to a page on its way into the site."""

from __future__ import annotations

import pytest

hooks = pytest.importorskip("docsite.hooks", reason="needs the extra [docs]")


def test_formulas_become_mathml():
    inline = r'<span class="arithmatex">\(x &lt; \lVert y \rVert^2\)</span>'
    page = hooks.on_page_content(f"a {inline} b")
    assert page.startswith("a <math")
    assert 'display="inline"' in page
    assert "arithmatex" not in page
    block = hooks.on_page_content('<div class="arithmatex">\\[\nx^2\n\\]</div>')
    assert 'display="block"' in block


def test_roles_become_links():
    page = hooks.on_page_content("see :class:<code>twofold.UKR</code>.")
    link = '<autoref identifier="twofold.UKR" optional><code>twofold.UKR</code></autoref>'
    assert page == f"see {link}."


def test_links_out_of_the_docs_become_text():
    page = hooks.on_page_markdown("[how it is built](../ARCHITECTURE.md#the-tree) and [a](b.md)")
    assert page == "how it is built (`ARCHITECTURE.md`) and [a](b.md)"


def test_the_table_of_needs_comes_before_the_parameters():
    table = "<table><tr><th>parameters of <code>UNN</code></th></tr></table>"
    entry = f'<h3 id="twofold.unn.UNN">UNN</h3>{hooks.PARAMETERS}<ul></ul>'
    page = hooks.on_page_content(f"<table>other</table>{entry}{table}")
    assert page == f"<table>other</table>{entry.replace('<p>', table + '<p>', 1)}"


def test_a_table_without_its_entry_is_an_error():
    with pytest.raises(ValueError, match="no entry"):
        hooks.on_page_content("<table><th>parameters of <code>Gone</code></th></table>")


def test_guides_come_before_figures_in_the_search():
    boost = hooks.search_boost
    assert boost("filling.md") > boost("api/ukr.md") > boost("experiments.md")
    assert boost("guides/go_back.md") > boost("concepts/psom_in_depth.md")
