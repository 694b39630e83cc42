"""How pages look, what they may do, and the widget, in a real browser."""

from __future__ import annotations

import numpy as np
import pytest
from explorer.browsing import (
    OPTIONS,
    coloured,
    drag,
    large_model,
    map_pixels,
    places,
    settle,
    smooth_images,
)

from twofold import explorer, upgrade
from twofold.explorer.page import static_text

NASTY = "</script><script>alert(1)</script> \"'&<b> {{data}} 😀"


def test_text_of_any_kind_stays_text(images, open_page, tmp_path):
    path = explorer.write(
        images,
        tmp_path / "a.html",
        title=NASTY,
        names=[NASTY] * 300,
        labels={NASTY: [NASTY, "b", "c"] * 100},
    )
    page = open_page(path)
    assert page.title() == NASTY
    assert page.get_by_role("heading", level=1).inner_text() == NASTY
    page.get_by_role("combobox", name="Search rows").fill("</script")
    assert NASTY in page.get_by_role("option").first.inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_has_no_horizontal_scroll(theme, images_file, open_page):
    page = open_page(images_file, width=375, height=720, color_scheme=theme)
    wide = "() => document.scrollingElement.scrollWidth"
    assert page.evaluate(wide) <= 375
    beyond = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, h1, canvas")]
          .filter((e) => e.offsetParent && e.getBoundingClientRect().right > 376)
          .map((e) => e.outerHTML.slice(0, 100))"""
    )
    assert not beyond


@pytest.mark.slow
@pytest.mark.parametrize("width", [375, 1200])
def test_everything_that_can_be_used_has_a_name(width, images_file, open_page):
    page = open_page(images_file, width=width)
    nameless = page.evaluate(
        """() => {
          const textOf = (id) => document.getElementById(id)?.textContent ?? "";
          const nameOf = (e) => [
            e.getAttribute("aria-label"), e.getAttribute("title"), e.textContent,
            ...(e.getAttribute("aria-labelledby") ?? "").split(" ").map(textOf),
            ...[...(e.labels ?? [])].map((label) => label.textContent),
          ].some((text) => text?.trim());
          const usable = "button, input, select, textarea, a, dialog, [role=application]";
          return [...document.querySelectorAll(usable)]
            .filter((e) => !e.closest("[hidden]") && !nameOf(e))
            .map((e) => e.outerHTML.slice(0, 120));
        }"""
    )
    assert not nameless
    assert page.locator("button").count() > 5
    assert page.evaluate("() => document.documentElement.lang") == "en"


@pytest.mark.slow
@pytest.mark.parametrize("view", ["bars", "curve", "table"])
def test_other_views_are_drawn(view, open_page, tmp_path):
    X, Y = smooth_images(100, 4)
    page = open_page(explorer.write(upgrade(X, Y, **OPTIONS), tmp_path / "a.html", view=view))
    row = page.locator(".tf-row-section")
    drag(page, (0.35, 0.5), (0.36, 0.5))
    settle(page)
    first = row.screenshot()
    drag(page, (0.65, 0.5), (0.66, 0.5))
    settle(page)
    assert row.screenshot() != first


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844), (900, 600)])
def test_the_first_view_shows_every_row(width, height, images, images_file, open_page):
    page = open_page(images_file, width=width, height=height)
    covered = """() => {
      const { map, atlas } = twofold;
      const host = document.querySelector(".tf-map").getBoundingClientRect();
      let count = 0;
      for (let i = 0; i < atlas.n; i++) {
        const [x, y] = map.camera.toScreen([map.positions[2 * i], map.positions[2 * i + 1]]);
        const top = document.elementFromPoint(host.left + x, host.top + y);
        count += !top?.closest(".tf-map");
      }
      return count;
    }"""
    assert page.evaluate(covered) == 0
    page.evaluate("() => twofold.map.zoomBy(3)")
    page.get_by_role("button", name="Show the whole map").click()
    page.wait_for_timeout(600)
    assert page.evaluate(covered) == 0


@pytest.mark.slow
def test_a_lost_graphics_card_comes_back(images_file, open_page):
    page = open_page(images_file)
    page.mouse.move(5, 5)
    settle(page)
    before = coloured(map_pixels(page))
    lose = "() => { window.card = twofold.map.points.gl.getExtension('WEBGL_lose_context'); "
    page.evaluate(lose + "window.card.loseContext(); }")
    page.wait_for_function("() => twofold.map.points.gl.isContextLost()")
    # What changes meanwhile is there afterwards.
    page.locator(".tf-category", has_text="left").click()
    page.evaluate("() => twofold.setSelection([1, 2, 3])")
    settle(page)
    page.evaluate("() => window.card.restoreContext()")
    page.wait_for_function("() => !twofold.map.points.gl.isContextLost()")
    settle(page)
    assert coloured(map_pixels(page)) < 0.7 * before
    page.evaluate("() => twofold.setSelection([])")
    page.locator(".tf-category", has_text="left").click()
    settle(page)
    assert coloured(map_pixels(page)) == pytest.approx(before, rel=0.05)
    assert before > 1_000


@pytest.mark.slow
def test_the_page_may_not_reach_the_network(images_file, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto(images_file.as_uri())
    page.evaluate("() => window.twofold.ready")
    refused = page.evaluate(
        """async () => {
          const refused = [];
          const note = (event) => refused.push(event.blockedURI);
          document.addEventListener("securitypolicyviolation", note);
          new Image().src = "http://127.0.0.1:9/a.png";
          await fetch("http://127.0.0.1:9/b").catch(() => {});
          await new Promise((resolve) => setTimeout(resolve, 100));
          return refused.sort();
        }"""
    )
    assert refused == ["http://127.0.0.1:9/a.png", "http://127.0.0.1:9/b"]
    context.close()


@pytest.mark.slow
def test_a_step_of_a_drag_takes_less_than_a_frame(open_page, tmp_path):
    model = large_model()
    path = explorer.write(model, tmp_path / "a.html", image_shape=(28, 28))
    assert path.stat().st_size <= 20e6
    page = open_page(path)
    steps = page.evaluate(
        """(X) => X.concat(X).map((x) => {
          const start = performance.now();
          twofold.regression.at(x);
          twofold.regression.density(x);
          return performance.now() - start;
        })""",
        places(model, 100).tolist(),
    )
    steps = steps[100:]  # the first are slower, until the browser has compiled them
    assert np.median(steps) < 16, np.quantile(steps, [0.5, 0.95])


def wheel_is_taken(page, *, ctrl=False):
    """Say whether a turn of the wheel above the map is kept from the page around it."""
    turn = """(ctrlKey) => {
      const about = { deltaY: 100, ctrlKey, cancelable: true, bubbles: true };
      const event = new WheelEvent("wheel", about);
      document.querySelector(".tf-map").dispatchEvent(event);
      return event.defaultPrevented;
    }"""
    return page.evaluate(turn, ctrl)


JUPYTERLAB = ".jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; }"


@pytest.mark.slow
def test_the_widget_talks_to_python(images, browser):
    pytest.importorskip("anywidget")
    widget = explorer.show(images)
    start = {"header": widget.header, "probe": [3.0, 2.0], "selection": [], "picked": -1}
    context = browser.new_context(viewport={"width": 900, "height": 700})
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto("about:blank")
    page.set_content(
        # JupyterLab's own rule for lists in outputs comes first, as it does there.
        f"<style>{JUPYTERLAB}</style><style>{static_text('style.css')}</style>"
        "<div id=cell class=jp-OutputArea-output style='height: 640px'></div>"
    )
    page.evaluate(
        """async ([source, start, bytes]) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const { default: widget } = await import(url);
          const data = new DataView(Uint8Array.from(bytes).buffer);
          const state = { ...start, generated: [], data };
          const listeners = {};
          window.fake = {
            saved: 0,
            get: (name) => state[name],
            set(name, value) {
              state[name] = value;
              (listeners[`change:${name}`] ?? []).forEach((act) => act());
            },
            on: (event, act) => (listeners[event] ??= []).push(act),
            off: (event, act) => { listeners[event] = listeners[event].filter((f) => f !== act); },
            save_changes() { this.saved += 1; },
          };
          window.stop = widget.render({ model: fake, el: document.getElementById("cell") });
        }""",
        [widget._esm, start, list(widget.data)],
    )
    page.wait_for_function("() => fake.saved > 0 && fake.get('generated').length")
    settle(page)
    term = "() => getComputedStyle(document.querySelector('.tf-facts dt')).float"
    assert page.evaluate(term) == "none"
    np.testing.assert_allclose(page.evaluate("() => fake.get('probe')"), [3, 2])
    found = np.array(page.evaluate("() => fake.get('generated')"))
    assert np.abs(found - images.inverse_transform([[3.0, 2.0]])[0]).max() < 1e-3
    page.evaluate("() => fake.set('probe', [2.5, 1.5])")
    settle(page)
    found = np.array(page.evaluate("() => fake.get('generated')"))
    assert np.abs(found - images.inverse_transform([[2.5, 1.5]])[0]).max() < 1e-3
    page.evaluate("() => fake.set('selection', [4, 5])")
    settle(page)
    assert "2 rows" in page.locator(".tf-panel").inner_text()
    # The wheel belongs to the notebook until the map was clicked.
    page.evaluate("() => document.activeElement.blur()")
    assert not wheel_is_taken(page)
    assert wheel_is_taken(page, ctrl=True)
    drag(page, (0.4, 0.4), (0.45, 0.5))
    assert wheel_is_taken(page)
    settle(page)
    moved = page.evaluate("() => fake.get('probe')")
    assert np.abs(np.array(moved) - [2.5, 1.5]).max() > 0.1
    page.evaluate("() => stop()")
    assert page.locator(".twofold-explorer").count() == 0
    context.close()
    assert not problems
