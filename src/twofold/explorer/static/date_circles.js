/**
 * Dates of a generated row: elapsed time, season and time of day say together when it is, as in `DateColumn`
 * of the library.
 */

/** Places on a circle that are compared before the best is refined; as many as the library compares. */
const AROUND = 96;
const DAY = 86400e3;

/** A copy of generated features in which the elapsed time of each date is that of the date itself. */
export function withDates(header, values) {
  const dated = Float64Array.from(values);
  for (const column of header.columns ?? [])
    if (column.kind === "date") dated[column.at] = daysOf(column, values);
  return dated;
}

/** The days whose features are nearest to those of a column, among those that its dates keep to. */
function daysOf({ at, periods, scales, times, calendar }, values) {
  const days = periods.reduce((found, period, k) => {
    const around = [values[at + 1 + 2 * k], values[at + 2 + 2 * k]];
    return found + shiftOf(found, around, period, scales[0], scales[1 + k]);
  }, values[at]);
  return calendar ? dayOfCalendar(days, calendar) : times ? atTimes(days, times) : days;
}

/** The same day at the nearest time between two shares of it. */
function atTimes(days, [low, high]) {
  const midnight = Math.round(days - (low + high) / 2);
  return midnight + Math.min(Math.max(days - midnight, low), high);
}

/** The nearest day that lies so many days before a month or year begins. */
function dayOfCalendar(days, { unit, before }) {
  const day = Math.round(days) + before;
  const date = new Date(day * DAY);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const starts = unit === "Y" ? [Date.UTC(year), Date.UTC(year + 1)] : [Date.UTC(year, month), Date.UTC(year, month + 1)];
  const [last, next] = starts.map((time) => time / DAY);
  return (day - last > next - day ? next : last) - before;
}

/** How far days move, half a period at most, towards their place on a circle. */
function shiftOf(days, [cos, sin], period, unit, radius) {
  const step = period / AROUND;
  const costs = Array.from({ length: AROUND }, (_, k) => {
    const shift = k * step - period / 2;
    const angle = (2 * Math.PI * (days + shift)) / period;
    return (shift / unit) ** 2 + ((Math.cos(angle) - cos) ** 2 + (Math.sin(angle) - sin) ** 2) / radius ** 2;
  });
  const best = costs.indexOf(Math.min(...costs));
  const isInside = best > 0 && best < AROUND - 1;
  // A parabola through the best place and those beside it.
  const [low, middle, high] = [costs[best - 1], costs[best], costs[best + 1]];
  const bend = low - 2 * middle + high;
  const part = isInside && bend > 0 ? (low - high) / (2 * bend) : 0;
  return (best + part) * step - period / 2;
}
