/** The explorer: what happens between map, regression and panel. */

import { decodePayload } from "./decode.js";
import { Regression } from "./regression.js";
import { project } from "./projection.js";
import { MapView } from "./map_view.js";
import { leftOut, meanCompanion, pastedCompanion, pastedNotice, rowCompanion } from "./companions.js";
import { saveRowCsv, saveRowPng } from "./downloads.js";
import { keepState, restoreState } from "./explorer_state.js";
import { listenOutside, listenToParts } from "./explorer_events.js";
import { HelpDialog } from "./help.js";
import { Layout } from "./layout.js";
import { saveMapPng, saveMapSvg } from "./map_picture.js";
import { localChange } from "./local_change.js";
import { NEIGHBORS } from "./neighbors.js";
import { makeParts } from "./parts.js";
import { domainNote } from "./path_player.js";
import { rowTags } from "./row_tags.js";
import { rowName, rowWords } from "./row_names.js";
import { Scene } from "./scene.js";
import { makeSecondMap } from "./second_map.js";
import { Announcer, placeText } from "./where.js";

/** The probe rests when it has not moved for this long; only then slower things are looked up. */
const REST_MS = 60;
/** While a path plays, the rows nearby follow at most so often. */
const PLAYING_MS = 150;

/** The address follows a camera that has come to rest. */
const STATE_MS = 250;

/** A density below this share of the domain's threshold is none. */
const NO_DENSITY = 1e-6;

const ZOOM_STEP = 1.5;

export class Explorer {
  constructor(root, header, hooks) {
    this.header = header;
    this.hooks = hooks;
    this.isPinned = false;
    this.mode = "probe";
    this.hovered = -1;
    this.fixed = null; // a companion that stays until it is dismissed
    this.chosen = -1; // a row that was jumped to; gone when the probe moves on
    this.selection = new Uint32Array(0);
    this.neighborRows = [];
    this.pasted = null;
    this.cleanups = [];
    this.layout = new Layout(
      root,
      header,
      {
        zoomIn: () => this.map.zoomBy(ZOOM_STEP),
        zoomOut: () => this.map.zoomBy(1 / ZOOM_STEP),
        home: () => this.maps.forEach((map) => map.resetView()),
        pan: () => this.toggleMode("pan"),
        lasso: () => this.toggleMode("lasso"),
        png: () => saveMapPng(this.map, this.header.title, this.legend.key),
        svg: () => saveMapSvg(this.map, this.header.title, this.legend.key),
        play: () => this.path.toggle(),
        theme: () => this.toggleTheme(),
        help: () => this.help.toggle(),
      },
      hooks.wholePage,
    );
    this.layout.setTheme(this.layout.systemTheme);
    this.help = new HelpDialog(header);
    this.announcer = new Announcer();
    this.layout.app.append(this.help.element, this.announcer.element);
  }

  async start(data) {
    this.atlas = await decodePayload(this.header, data);
    this.regression = new Regression(this.atlas);
    this.value = new Float64Array(this.atlas.D);
    this.buildParts();
    this.scene = new Scene(this.atlas, this.regression, this.slices);
    this.map = new MapView(this.layout.mapHost, {
      ...this.scene.box,
      theme: this.layout.theme,
      covers: () => this.layout.covers(),
      isEmbedded: !this.hooks.wholePage,
      ...rowTags(this.atlas),
    });
    this.scene.map = this.map;
    this.second = makeSecondMap(this);
    this.map.resize();
    listenToParts(this);
    this.cleanups.push(listenOutside(this));
    restoreState(this, true);
    this.layout.makeRoom(this.map);
    await this.map.ready();
    this.layout.loading.hidden = true;
    this.scene.showDensity();
  }

  /** The map of the model, and the one beside it if there is one. */
  get maps() {
    return [this.map, this.second].filter(Boolean);
  }

  buildParts() {
    const actions = {
      paste: () => this.paste.open(),
      csv: () => saveRowCsv(this.header, this.value),
      png: () => saveRowPng(this.header, this.value, this.rowView.generatedImage),
    };
    Object.assign(this, makeParts(this.atlas, this.layout, actions));
    // The address of a notebook is not ours.
    this.selectionView.linkButton.hidden = !this.hooks.wholePage;
    this.placeLegend();
  }

  placeLegend() {
    const { isPhone, legendCard, legendSlot } = this.layout;
    if (this.wasPhone === isPhone) return;
    this.wasPhone = isPhone;
    this.panel.holdLegend(this.legend.element, isPhone);
    legendCard.hidden = isPhone;
    if (!isPhone) legendSlot.append(this.legend.element);
  }

  onMapProbe(point, phase) {
    if (phase === "hover" && (this.isPinned || this.path.isPlaying)) return;
    this.path.pause();
    if (phase === "click" && this.hovered >= 0) {
      this.jumpTo(this.hovered, false);
      this.hooks.onPick?.(this.chosen);
      return;
    }
    // Without pinning, the way from the map to the panel would move the probe away again.
    if (phase !== "hover") this.setPinned(true);
    this.chosen = -1;
    this.moveProbe(this.scene.fromMap(point));
  }

  /** Put the probe at a latent place; all that follows is drawn once a frame. */
  moveProbe(x) {
    this.probe = Float64Array.from(x);
    this.frame ??= requestAnimationFrame(() => this.drawFrame());
  }

  drawFrame() {
    this.frame = null;
    if (this.isDestroyed) return;
    const { probe, regression } = this;
    this.rowView.setRow(regression.at(probe, this.value));
    this.density = regression.density(probe);
    this.isInside = this.density >= this.header.domain_threshold;
    const isNowhere = this.density < NO_DENSITY * this.header.domain_threshold;
    this.where.show(
      placeText(probe, this.atlas),
      regression.box ? null : isNowhere ? 0 : this.density,
      this.isInside,
    );
    this.scene.setProbe(probe);
    if (this.path.isPlaying && !(performance.now() - this.nearAt < PLAYING_MS)) this.showNear();
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => this.lookAround(), REST_MS);
  }

  /** What is looked up when the probe rests: what is near, and words about the place. */
  lookAround() {
    // With a frame on its way the numbers are of an older place; it will come back here.
    if (!this.probe || this.frame || this.isDestroyed) return;
    const [first] = this.showNear();
    this.announcer.say(this.where.words(first ? rowWords(this.atlas, first.row) : null));
    this.keepState();
    this.hooks.onProbe?.(this.probe, this.value);
  }

  /** Show and return the nearest rows, and show the one beside and the local change. */
  showNear() {
    const { atlas, probe, regression, chosen } = this;
    this.nearAt = performance.now();
    const near = regression.nearestRows(probe, NEIGHBORS, this.legend.mask);
    this.neighborRows = near.map(({ row }) => row);
    this.neighbors.show(near);
    const beside = chosen >= 0 ? chosen : this.neighborRows[0];
    this.rowView.setCompanion(
      this.fixed ?? (beside === undefined ? null : rowCompanion(atlas, beside, chosen < 0)),
    );
    if (this.rowView.wantsChange) this.rowView.setChange(localChange(regression, atlas, probe));
    this.where.setHiddenRow(this.legend.mask?.[chosen] === 0 ? rowName(atlas, chosen) : null);
    this.drawMarks();
    return near;
  }

  drawMarks() {
    const { neighborRows: neighbors, pasted, chosen } = this;
    this.scene.setMarks({ neighbors, ends: this.path.ends, pasted, chosen });
  }

  onHover(row) {
    this.hovered = row;
    for (const map of this.maps) map.hoverRow(row);
    this.moveTip();
  }

  moveTip() {
    this.layout.showTip(this.hovered >= 0 ? rowWords(this.atlas, this.hovered) : null, this.pointer);
  }

  setPinned(isPinned) {
    this.isPinned = isPinned;
    this.where.setPinned(isPinned);
  }

  /** Go to a row: the probe at its latent place, the row itself beside what is generated there. */
  jumpTo(row, doesFrame) {
    this.path.pause();
    this.chosen = row;
    this.setPinned(true);
    this.goTo(this.scene.rowPlace(row));
    if (doesFrame) this.map.frameRow(this.scene.rowPoint(row));
  }

  /** Move the probe, and the slice with it where there are more than two dimensions. */
  goTo(x) {
    if (this.atlas.q > 2) {
      this.slices.setRest(x.slice(2));
      this.scene.showSlice();
    }
    this.moveProbe(x);
  }

  pick(end) {
    if (!this.probe) return;
    this.setPinned(true);
    const name = this.chosen >= 0 ? rowName(this.atlas, this.chosen) : placeText(this.probe, this.atlas);
    this.path.setEnd(end, this.probe, name);
  }

  onPath(points) {
    this.scene.setPath(points, Math.round(this.path.position));
    this.drawMarks();
    this.comparePlaces();
    this.keepState();
    if (points) this.path.setNote(domainNote(this.regression, points));
  }

  /** The ends of the path are also what the place here can be compared with. */
  comparePlaces() {
    const place = (end) => end && { name: end.text, values: this.regression.at(end.x) };
    const { A, B } = this.path.ends;
    this.rowView.setPlaces({ A: place(A), B: place(B) });
  }

  /** Colour the map by what was clicked in a list. */
  colorBy(key) {
    this.legend.setColor(key);
    this.announcer.say(`The map is coloured by ${this.legend.quantity(key)?.title ?? "one colour"}.`);
  }

  onWalk(x, k) {
    this.setPinned(true);
    this.chosen = -1;
    this.scene.setPath(this.path.points, k);
    this.goTo(x);
  }

  onSlice() {
    this.scene.showSlice();
    if (this.probe) this.moveProbe(this.scene.fromMap(this.scene.toMap(this.probe)));
  }

  /** @param {"probe"|"pan"|"lasso"} mode what dragging does */
  setMode(mode) {
    this.mode = mode;
    this.layout.setMode(mode);
    for (const map of this.maps) map.setMode(mode);
  }

  toggleMode(mode) {
    this.setMode(this.mode === mode ? "probe" : mode);
  }

  /** @param {Iterable<number>} chosen numbers of rows, in any order */
  select(chosen) {
    const rows = Uint32Array.from(new Set(chosen)).filter((row) => row < this.atlas.n).sort();
    this.selection = rows;
    for (const map of this.maps) {
      map.setSelection(rows);
      map.hoverRow(-1);
    }
    this.selectionView.show(rows);
    this.panel.showSelection(!this.selectionView.isEmpty);
    if (!this.pasted) this.fixed = meanCompanion(this.atlas, rows);
    this.lookAround();
    this.keepState();
    this.hooks.onSelect?.(rows);
  }

  /** @param {{values: Float64Array, skipped: string[], unknown: string[]}} pasted what was read of it */
  async showPasted({ values, skipped, unknown = [] }) {
    this.where.setNotice("Looking for its place\u2026");
    // Let that line be painted before the search takes the thread.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const { x, error } = project(this.regression, values);
    this.pasted = { x, values };
    this.fixed = pastedCompanion(this.header, values);
    this.chosen = -1;
    this.setPinned(true);
    this.goTo(x);
    const left = leftOut(skipped, unknown);
    this.where.setNotice(pastedNotice(this.header, values, error, this.regression.at(x)) + left);
  }

  dismissPasted() {
    this.pasted = null;
    this.where.setNotice(null);
    this.fixed = meanCompanion(this.atlas, this.selection);
    this.lookAround();
  }

  escape() {
    if (this.mode !== "probe") this.setMode("probe");
    else if (this.selection.length) this.select(new Uint32Array(0));
    else this.setPinned(false);
  }

  /** Keys that move the probe, and those of the page, work from here. */
  focusMap() {
    this.layout.mapHost.focus({ preventScroll: true });
  }

  showColors() {
    for (const map of this.maps) map.setColors(this.legend.coloring);
  }

  /** @param {Uint8Array|null} mask 0 hides a row */
  setFilter(mask) {
    for (const map of this.maps) map.setFilter(mask);
    this.layout.noteFilter(this.legend.status.textContent);
  }

  setLook(look) {
    for (const map of this.maps) map.setLook(look);
  }

  focusColor() {
    this.legend.colorBox.focus();
    this.legend.colorBox.open("");
  }

  toggleTheme() {
    this.setTheme(this.layout.theme === "dark" ? "light" : "dark");
  }

  setTheme(theme) {
    this.layout.setTheme(theme);
    for (const map of this.maps) map.setTheme(theme);
    this.rowView?.refreshTheme();
  }

  keepState() {
    if (this.hooks.wholePage && this.probe && !this.isRestoring) keepState(this);
  }

  /** The same for what changes many times a second. */
  keepStateSoon() {
    clearTimeout(this.stateTimer);
    this.stateTimer = setTimeout(() => this.isDestroyed || this.keepState(), STATE_MS);
  }

  destroy() {
    this.isDestroyed = true;
    clearTimeout(this.stateTimer);
    this.path?.pause();
    clearTimeout(this.restTimer);
    this.announcer.destroy();
    for (const clean of this.cleanups) clean();
    this.rowView?.destroy();
    this.scene?.destroy();
    this.second?.destroy();
    this.layout.app.remove();
  }
}
