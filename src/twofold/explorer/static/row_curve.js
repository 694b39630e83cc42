/**
 * A row as a curve over the feature index, on axes that stay put so that motion can be compared.
 */

import { element, formatNumber } from "./elements.js";
import { featureText } from "./feature_text.js";
import { imageRange } from "./row_image.js";

const CURVE_MARGIN = { left: 52, right: 12, top: 12, bottom: 26 };

/** Three to six round values between low and high. */
export function roundTicks(low, high, most = 5) {
  const rough = (high - low) / most;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return ticks;
}

export class RowCurve {
  constructor(header) {
    this.header = header;
    this.range = imageRange(header);
    this.values = null;
    this.companion = null;
    this.canvas = element("canvas", {
      class: "tf-curve",
      role: "img",
      "aria-label": "Generated row as a curve",
    });
    this.reading = element("p", { class: "tf-reading" }, "\u00a0");
    this.element = element("div", { class: "tf-curve-box" }, this.canvas, this.reading);
    this.canvas.addEventListener("pointermove", (event) => this.read(event));
    this.canvas.addEventListener("pointerleave", () => this.read(null));
    this.observer = new ResizeObserver(() => this.redraw());
    this.observer.observe(this.canvas);
  }

  draw(values, companion) {
    this.values = values;
    this.companion = companion;
    this.redraw();
  }

  /** Colours come from the style sheet, so that the curve follows the theme. */
  readTheme() {
    const style = getComputedStyle(this.canvas);
    this.colors = {
      ink: style.getPropertyValue("--tf-soft-ink").trim() || "#666",
      line: style.getPropertyValue("--tf-line").trim() || "#ddd",
      accent: style.getPropertyValue("--tf-accent").trim() || "#36c",
      faint: style.getPropertyValue("--tf-companion").trim() || "#aaa",
      band: style.getPropertyValue("--tf-band").trim() || "#8882",
    };
  }

  redraw() {
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width || !height || !this.values) return;
    if (!this.colors) this.readTheme();
    const ratio = globalThis.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.frame = {
      width: width - CURVE_MARGIN.left - CURVE_MARGIN.right,
      height: height - CURVE_MARGIN.top - CURVE_MARGIN.bottom,
    };
    this.drawBand(context);
    this.drawAxes(context);
    if (this.companion) this.stroke(context, this.companion, this.colors.faint, 1.5);
    this.stroke(context, this.values, this.colors.accent, 2);
  }

  x(j) {
    const last = Math.max(1, this.header.features.length - 1);
    return CURVE_MARGIN.left + (j / last) * this.frame.width;
  }

  y(value) {
    const [low, high] = this.range;
    return CURVE_MARGIN.top + (1 - (value - low) / (high - low)) * this.frame.height;
  }

  /** The range of each feature over the training rows. */
  drawBand(context) {
    const { feature_low: low, feature_high: high } = this.header;
    context.beginPath();
    for (let j = 0; j < low.length; j++) context.lineTo(this.x(j), this.y(high[j]));
    for (let j = low.length - 1; j >= 0; j--) context.lineTo(this.x(j), this.y(low[j]));
    context.closePath();
    context.fillStyle = this.colors.band;
    context.fill();
  }

  drawAxes(context) {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = this.colors.ink;
    context.strokeStyle = this.colors.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const tick of roundTicks(this.range[0], this.range[1], 4)) {
      const y = Math.round(this.y(tick)) + 0.5;
      context.beginPath();
      context.moveTo(CURVE_MARGIN.left, y);
      context.lineTo(CURVE_MARGIN.left + this.frame.width, y);
      context.stroke();
      context.fillText(formatNumber(tick, 3), CURVE_MARGIN.left - 8, y);
    }
    context.textBaseline = "top";
    const D = this.header.features.length;
    const ticks = roundTicks(1, D, 5).filter((tick) => Number.isInteger(tick) && tick >= 1);
    for (const tick of ticks) {
      context.textAlign = tick === D ? "right" : "center";
      context.fillText(String(tick), this.x(tick - 1), CURVE_MARGIN.top + this.frame.height + 8);
    }
  }

  stroke(context, values, color, lineWidth) {
    context.beginPath();
    let pen = false;
    for (let j = 0; j < values.length; j++) {
      const value = values[j];
      if (Number.isNaN(value)) {
        pen = false; // a gap where the value is missing
      } else if (pen) {
        context.lineTo(this.x(j), this.y(value));
      } else {
        context.moveTo(this.x(j), this.y(value));
        pen = true;
      }
    }
    context.strokeStyle = color;
    context.lineWidth = lineWidth;
    context.lineJoin = "round";
    context.stroke();
  }

  /** Name and value under the pointer. */
  read(event) {
    if (!event || !this.values || !this.frame) {
      this.reading.textContent = "\u00a0";
      return;
    }
    const box = this.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - CURVE_MARGIN.left) / this.frame.width;
    const D = this.values.length;
    const j = Math.max(0, Math.min(D - 1, Math.round(share * (D - 1))));
    this.reading.textContent = `${this.header.features[j]}: ${featureText(this.header, j, this.values[j])}`;
  }

  refreshTheme() {
    this.colors = null;
    this.redraw();
  }

  destroy() {
    this.observer.disconnect();
  }
}

/** A row as a tiny curve for lists. */
export function sparkline(header, values) {
  const [low, high] = imageRange(header);
  const [width, height] = [64, 40];
  const last = Math.max(1, values.length - 1);
  let d = "";
  let pen = "M";
  for (let j = 0; j < values.length; j++) {
    if (Number.isNaN(values[j])) {
      pen = "M";
      continue;
    }
    const x = 2 + (j / last) * (width - 4);
    const y = 2 + (1 - (values[j] - low) / (high - low)) * (height - 4);
    d += `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  const holder = element("span", { class: "tf-sparkline", "aria-hidden": "true" });
  holder.innerHTML = `<svg viewBox="0 0 ${width} ${height}"><path d="${d}"/></svg>`;
  return holder;
}
