/**
 * The frame of the page: top bar, map with its tools, and the place for panel and windows.
 */

import { countOf, element, icon, iconButton, uniqueId } from "./elements.js";

/** Narrower than this, the panel is a sheet at the bottom. */
export const PHONE_WIDTH = 720;

/** How large the map must be beside the open legend, as a share of what it is beside the folded one. */
const LEAST_ROOM = 0.72;

export class Layout {
  /**
   * @param {ParentNode} root
   * @param {object} header
   * @param {Object<string, () => void>} actions zoomIn, zoomOut, home, pan, lasso, play, theme, help
   * @param {boolean} isWholePage a notebook has its own main part
   */
  constructor(root, header, actions, isWholePage) {
    this.title = element("h1", { title: header.title }, header.title);
    this.searchSlot = element("div", { class: "tf-search" });
    this.themeButton = iconButton("moon", "Light or dark", actions.theme);
    this.mapHost = element("div", { class: "tf-map" });
    this.modeButtons = {
      pan: iconButton("move", "Move the map by dragging", actions.pan, { "aria-pressed": "false" }),
      lasso: iconButton("lasso", "Select rows with a lasso", actions.lasso, { "aria-pressed": "false" }),
    };
    // On a phone the path's own button is out of sight while the row is in sight.
    this.playButton = element("button", {
      type: "button",
      class: "tf-button tf-map-play",
      hidden: true,
      onclick: actions.play,
    });
    // Where the legend, which says so, is folded; and on a phone, where it lies in the panel.
    this.filterNotes = ["tf-folded-note", "tf-map-note"].map((name) => element("span", { class: name, hidden: true }));
    this.legendSlot = element("div", {});
    this.legendCard = element(
      "details",
      { class: "tf-legend-card tf-more", open: true },
      element("summary", {}, element("span", {}, "Colour and filter", this.filterNotes[0])),
      this.legendSlot,
    );
    this.tip = element("div", { class: "tf-tip", hidden: true, "aria-hidden": "true" });
    this.toast = element("div", { class: "tf-toast", role: "status", hidden: true });
    this.loading = element("p", { class: "tf-loading", role: "status" }, "Reading the map\u2026");
    this.tools = element(
      "div",
      { class: "tf-tools", role: "toolbar", "aria-label": "Map", "aria-orientation": "vertical" },
      iconButton("plus", "Zoom in", actions.zoomIn),
      iconButton("minus", "Zoom out", actions.zoomOut),
      iconButton("home", "Show the whole map", actions.home),
      ...Object.values(this.modeButtons),
      this.makePictureMenu(actions),
    );
    const panelId = uniqueId("panel");
    this.mapArea = element(
      isWholePage ? "main" : "section",
      { class: "tf-map-area", "aria-label": "Map" },
      this.mapHost,
      this.tools,
      this.playButton,
      this.legendCard,
      this.filterNotes[1],
      this.tip,
      this.toast,
      this.loading,
    );
    const { model } = header;
    this.panelSlot = element("div", { class: "tf-panel-slot", id: panelId, tabindex: -1 });
    this.app = element(
      "div",
      { class: "twofold-explorer" },
      element(
        "a",
        {
          class: "tf-skip",
          href: `#${panelId}`,
          // By script: a change of the address would lose the state kept there, and shadow roots have no targets.
          onclick: (event) => {
            event.preventDefault();
            this.panelSlot.focus();
          },
        },
        "Skip to the row",
      ),
      element(
        "header",
        { class: "tf-bar" },
        element(
          "div",
          { class: "tf-titles" },
          this.title,
          element(
            "p",
            {},
            `${model.family} \u00b7 ${countOf(model.n_rows, "row")} \u00b7 ${header.columns ? countOf(header.columns.length, "column") : countOf(model.n_features, "feature")}`,
          ),
        ),
        this.searchSlot,
        element(
          "div",
          { class: "tf-bar-buttons" },
          this.themeButton,
          iconButton("help", "Help and keys", actions.help),
        ),
      ),
      this.mapArea,
      this.panelSlot,
    );
    root.append(this.app);
  }

  /** The map as a file. */
  makePictureMenu(actions) {
    const choice = (title, act) =>
      element("button", { type: "button", class: "tf-button", onclick: () => { menu.open = false; act(); } }, title);
    const menu = element(
      "details",
      { class: "tf-picture-menu" },
      element("summary", { class: "tf-icon-button", title: "Save the map as a picture", "aria-label": "Save the map as a picture" }, icon("down")),
      element("div", {}, choice("PNG", actions.png), choice("SVG", actions.svg)),
    );
    return menu;
  }

  /** The wish of the system until the reader chooses. */
  get systemTheme() {
    return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  get theme() {
    return this.app.dataset.theme;
  }

  setTheme(theme) {
    this.app.dataset.theme = theme;
    const label = theme === "dark" ? "Use light colours" : "Use dark colours";
    this.themeButton.setAttribute("aria-label", label);
    this.themeButton.title = label;
    this.themeButton.replaceChildren(icon(theme === "dark" ? "sun" : "moon"));
  }

  /** @param {"probe"|"pan"|"lasso"} mode what dragging does */
  setMode(mode) {
    for (const [name, button] of Object.entries(this.modeButtons))
      button.setAttribute("aria-pressed", String(name === mode));
  }

  /** Say beside the map which part of the rows it shows; empty for all of them. */
  noteFilter(text) {
    for (const note of this.filterNotes) {
      note.textContent = text;
      note.hidden = !text;
    }
  }

  setPlay(isReady, isPlaying) {
    this.playButton.hidden = !isReady;
    this.playButton.replaceChildren(icon(isPlaying ? "pause" : "play"), isPlaying ? "Pause" : "Play A to B");
  }

  get isPhone() {
    return this.app.clientWidth > 0 && this.app.clientWidth < PHONE_WIDTH;
  }

  /** What lies on the map, in pixels from its left and top. */
  covers() {
    return this.coversOf(this.mapHost, [this.tools, this.legendCard, this.filterNotes[1], ...this.sheet]);
  }

  /** The panel, where it lies on the map. */
  get sheet() {
    return this.isPhone ? [...this.panelSlot.children] : [];
  }

  /** @param {HTMLElement} mapHost @param {HTMLElement[]} parts that may lie on it */
  coversOf(mapHost, parts) {
    const host = mapHost.getBoundingClientRect();
    return parts
      .map((part) => part.getBoundingClientRect())
      .filter((box) => box.width > 0 && host.width > 0)
      .map((box) => ({
        left: box.left - host.left,
        top: box.top - host.top,
        right: box.right - host.left,
        bottom: box.bottom - host.top,
      }));
  }

  /** Fold the legend if the map would be much smaller beside it, and let the map keep clear of what lies on it. */
  makeRoom(map) {
    const besideOpen = map.roomFor(this.covers());
    this.legendCard.open = false;
    const besideFolded = map.roomFor(this.covers());
    this.legendCard.open = !besideOpen || besideOpen.scale >= LEAST_ROOM * besideFolded.scale;
    map.findRoom();
  }

  /** Name of the row under the pointer, beside it; null hides it. */
  showTip(text, event) {
    this.tip.hidden = !text;
    if (!text || !event) return;
    this.tip.textContent = text;
    this.tip.style.left = "0"; // it is as wide as its text there
    const box = this.mapArea.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const onLeft = x > box.width - width - 24;
    const left = onLeft ? x - width - 14 : x + 14;
    // Where neither side has room, as on a phone, it stands below what it would cover.
    const fits = left >= 4;
    this.tip.style.left = `${fits ? left : Math.max(4, box.width - width - 4)}px`;
    this.tip.style.top = `${fits || y > height + 18 ? Math.max(4, y - height - 8) : y + 18}px`;
  }

  /** Say something on the map for a while. */
  say(text, ...more) {
    clearTimeout(this.toastTimer);
    this.toast.replaceChildren(text, ...more);
    this.toast.hidden = false;
    this.toastTimer = setTimeout(() => (this.toast.hidden = true), more.length ? 60000 : 4000);
  }

  /** Instead of the map: why it cannot be shown. */
  fail(error) {
    this.loading.hidden = false;
    this.loading.classList.add("tf-problem");
    this.loading.setAttribute("role", "alert");
    this.loading.textContent = `The map could not be shown: ${error.message}`;
  }
}
